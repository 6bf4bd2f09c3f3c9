// Axes, colours and the search in sorted lists.
import { strict as assert } from "node:assert";
import { test } from "node:test";
import { axis, contrast, faded, mix, nearest, text_on, word } from "../scale";

test("Ticks_AreRoundEvenAndInside", () => {
  for (const [low, high] of [[0, 1], [-0.31, 0.36], [2.55, 5.61], [0, 4915200], [-1e-7, 3e-7], [17, 17.001]]) {
    for (const many of [2, 5, 9]) {
      const ticks = axis(low, high, [0, 1]).ticks(many);
      assert.ok(ticks.length >= 2 && ticks.length <= 1.5 * many + 1, `${ticks}`);
      const step = ticks[1] - ticks[0];
      assert.match(step.toExponential(6), /^[125]\.0+e/);
      ticks.forEach((tick, i) => {
        const little = 1e-8 * (high - low);      // rounding
        assert.ok(tick > low - little && tick < high + little);
        assert.ok(Math.abs(tick - ticks[0] - i * step) < little);
      });
      assert.ok(ticks[0] - step < low && ticks[ticks.length - 1] + step > high);      // none is left out at the ends
    }
  }
  assert.deepEqual(axis(0, 1, [0, 1]).ticks(5), [0, 0.2, 0.4, 0.6, 0.8, 1]);
});

test("LogTicks_FitTheRoom", () => {
  assert.deepEqual(axis(0.5, 30, [0, 1], true).ticks(5), [0.5, 1, 2, 5, 10, 20]);
  assert.deepEqual(axis(0.5, 300, [0, 1], true).ticks(4), [1, 10, 100]);
  assert.deepEqual(axis(1e-3, 1e3, [0, 1], true).ticks(4), [0.01, 1, 100]);
  assert.deepEqual(axis(3, 8, [0, 1], true).ticks(5), [3, 4, 5, 6, 7, 8]);      // less than a decade
});

test("ManyDigits_DoNotMakeTicksWithoutEnd", () => {
  assert.ok(axis(1e15, 1e15 + 0.5, [0, 1]).ticks(5).length <= 100);
});

test("Positions_AreStraightInTheValueOrItsLogarithm", () => {
  const y = axis(2, 6, [100, 0]), x = axis(1, 100, [10, 30], true);
  assert.equal(y(3), 75);
  assert.ok(Math.abs(x(10) - 20) < 1e-12);
  assert.deepEqual(x.domain(), [1, 100]);
  assert.equal(axis(5, 5, [0, 10])(5), 5);      // a constant lies in the middle
});

test("Nearest_EqualsASearchOfAll", () => {
  const values = [-3, 0, 1, 1, 4, 10];
  for (let x = -5; x < 12; x += 0.37) {
    const least = Math.min(...values.map((value) => Math.abs(value - x)));
    assert.equal(Math.abs(values[nearest(values, x)] - x), least);
  }
  assert.equal(nearest([], 3), 0);
});

test("Colours_AreMixedStraightInRgb", () => {
  assert.equal(word(mix("#000000", "#ff8040", 0.5)), word("#804020"));
  assert.equal(word(mix("#123456", "#ffffff", 0)), word("#123456"));
  assert.equal(faded("#0072b2", 0.5), "rgba(0,114,178,0.5)");
  assert.equal(word("#0172b2"), 0xffb27201);      // bytes red, green, blue, alpha on little-endian machines
});

test("Contrast_IsThatOfWcag", () => {
  assert.ok(Math.abs(contrast("#000000", "#ffffff") - 21) < 1e-9);
  assert.ok(Math.abs(contrast("#777777", "#ffffff") - 4.48) < 0.01);      // the example that fails 4.5 : 1 by a little
  assert.equal(text_on("#fde725"), "#000000");
  assert.equal(text_on("#440154"), "#ffffff");
});
