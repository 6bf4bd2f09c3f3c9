// Scales, their ticks, and mixed colours.
import { strict as assert } from "node:assert";
import { test } from "node:test";
import { axis, log_ticks, mix, nearest, ticks, widened } from "../scale";

test("Ticks_AreRoundAndInside", () => {
  assert.deepEqual(ticks(0, 10, 5), [0, 2, 4, 6, 8, 10]);
  assert.deepEqual(ticks(0.1, 0.3, 2), [0.1, 0.2, 0.3]);
  assert.deepEqual(ticks(-1.03, 0.4, 3), [-1, -0.5, 0]);
  assert.deepEqual(ticks(12345, 12355, 4), [12346, 12348, 12350, 12352, 12354]);
});

test("LogTicks_ArePowers_OrTheirMultiples_OrRound", () => {
  assert.deepEqual(log_ticks(1e-6, 1e6, 4), [1e-6, 1e-4, 0.01, 1, 100, 1e4, 1e6]);
  assert.deepEqual(log_ticks(0.5, 30, 6), [0.5, 0.6, 0.7, 0.8, 0.9, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 20, 30]);
  assert.deepEqual(log_ticks(0.1003, 0.16, 3), [0.12, 0.14, 0.16]);      // no multiple of a power is inside
});

test("Axis_GoesFromEndToEnd", () => {
  const linear = axis(2, 4, [100, 0]), log = axis(1, 100, [0, 10], true);
  assert.deepEqual([2, 3, 4, 5].map(linear), [100, 50, 0, -50]);
  [1, 10, 100].forEach((value, i) => assert.ok(Math.abs(log(value) - 5 * i) < 1e-9));
  assert.deepEqual(axis(3, 3, [0, 1]).domain(), [2.7, 3.3]);
  assert.deepEqual(axis(NaN, NaN, [0, 1]).domain(), [0, 1]);
});

test("Widened_TakesInWhatIsNear", () => {
  assert.deepEqual(widened([0, 10], [14, -4, 16, 5], false), [-4, 14]);
  assert.deepEqual(widened([1, 100], [500, 2000, 0], true), [1, 500]);
});

test("Nearest_IsTheClosest", () => {
  const list = [0, 1, 5, 5.5, 9];
  for (let x = -1; x < 11; x += 0.13) {
    const least = Math.min(...list.map((value) => Math.abs(value - x)));
    assert.equal(Math.abs(list[nearest(list, x)] - x), least);
  }
  assert.equal(nearest([7], 3), 0);
});

test("Mix_IsStraightInRgb", () => {
  assert.equal(mix("#000000", "#ff8001", 0.5), "rgb(128, 64, 1)");
  assert.equal(mix("rgb(10, 20, 30)", "#141414", 0), "rgb(10, 20, 30)");
});
