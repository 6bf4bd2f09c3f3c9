// The fragment of the URL, and numbers as text.
import { strict as assert } from "node:assert";
import { test } from "node:test";
import { moments_of } from "../data";
import { number, tokens } from "../scale";
import { parse_fragment, State, write_fragment } from "../state";

const state: State = {
  run: 1, other: 0, source: "probe", metric: "k_norm", mode: "change", fit: "shown", brush: [100, 900], pinned: [{ layer: 3, head: 1, slot: 0 }, { layer: 5, head: 0, slot: 1 }],
  hover: null, step: null, x: "sink", y: "entropy", colour: "depth", order: "layer", time: "log", theme: "light", data: 0,
};

test("Fragment_GoesThereAndBack", () => {
  const { run, metric, mode, brush, pinned, x, y, time } = state;
  assert.deepEqual(parse_fragment(write_fragment(state)), { run, metric, mode, brush, pinned, x, y, time });
});

test("Fragment_IsReadableByPeople", () => {
  assert.equal(write_fragment(state), "#m=k_norm&h=3.1,5.0&s=100-900&r=1&c=change&t=log&x=sink&y=entropy");
});

test("DamagedFragment_GivesNothing", () => {
  assert.deepEqual(parse_fragment("#h=x,1&s=5&c=nothing&r=one"), { pinned: [] });
});

test("Brush_BetweenTwoMoments_TakesTheNearest", () => {
  assert.deepEqual(moments_of([0, 10, 20, 30], [12, 13]), { first: 1, last: 1 });
  assert.deepEqual(moments_of([0, 10, 20, 30], [5, 25]), { first: 1, last: 2 });
  assert.deepEqual(moments_of([0, 10, 20, 30], null), { first: 3, last: 3 });
});

test("Numbers_HaveFourDigitsAndATrueMinus", () => {
  assert.equal(number(-0.123456), "−0.1235");
  assert.equal(number(1.5e-7), "1.5e−7");
  assert.equal(number(null), "–");
  assert.equal(tokens(4915200), "4.92 M");
});
