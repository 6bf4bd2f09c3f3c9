// The fragment of the URL, moments of a brush, and numbers as text.
import { strict as assert } from "node:assert";
import { test } from "node:test";
import { moments_of, two_metrics } from "../data";
import { number, tokens } from "../scale";
import { read_fragment, write_fragment } from "../fragment";
import { Index } from "../source";
import { State } from "../state";

const state: State = {
  run: 1, other: 0, source: "probe", metric: "k_norm", mode: "change", fit: "shown", brush: [100, 900], pinned: [{ layer: 3, head: 1, slot: 0 }, { layer: 5, head: 0, slot: 1 }],
  hover: null, step: null, x: "sink", y: "entropy", colour: "depth", order: "layer", time: "log", theme: "light", data: 0,
};

// Two runs of one seed and one of another; k_norm, sink and entropy, at steps 0 to 1000.
const run = (same_heads: number) => ({ layers: 6, heads: { q: 4, k: 2 }, same_heads,
  sources: [{ name: "probe", step: [0, 500, 1000], series: ["k_norm", "sink", "entropy"].map((metric) => ({ metric })) }] });
const index = { runs: [run(0), run(0), run(1)], metrics: ["k_norm", "sink", "entropy", "induction"].map((name) => ({ name })) } as unknown as Index;
const read = (text: string) => read_fragment(text, index, state);

test("Fragment_GoesThereAndBack", () => {
  const { metric, mode, brush, pinned, x, y, time } = state;
  assert.deepEqual(read(write_fragment(state)), { change: { run: 1, other: 0, metric, x, y, mode, time, brush, pinned }, problems: [] });
});

test("Fragment_IsReadableByPeople", () => {
  assert.equal(write_fragment(state), "#m=k_norm&h=3.1,5.0&s=100-900&r=1&c=change&t=log&x=sink&y=entropy");
});

test("Fragment_NamesWhatIsNotThere", () => {
  for (const [text, ...problems] of [
    ["#m=foo", "metric “foo”, which this page does not have"],
    ["#x=foo&y=bar", "metric “foo”, which this page does not have", "metric “bar”, which this page does not have"],
    ["#m=induction", "metric “induction”, which was not measured here"],
    ["#r=3", "run “3”, which this page does not have"],
    ["#r=one&f=batch", "run “one”, which this page does not have", "measurement “batch”, which this page does not have"],
    ["#h=6.0", "head “L6H0”, which this page does not have"],
    ["#h=0.4,x", "head “L0H4”, which this page does not have; head “x”, which is not a head such as 3.1"],
    ["#h=0.0,0.1,0.2,0.3,1.0,1.1,1.2", "7 heads, of which the first 6 are shown"],
    ["#s=5", "steps “5”, which are not steps such as 100-900"],
    ["#s=900-100", "steps “900-100”, which are not steps such as 100-900"],
    ["#s=1001-2000", "steps 1001-2000, but there are steps 0 to 1000"],
    ["#c=nothing&t=square", "colour “nothing”, which this page does not have", "time axis “square”, which this page does not have"],
    ["#x=sink&y=sink", "metric “sink” for both axes of the scatter"],
    ["#c=run&o=2", "the difference of two runs whose heads do not correspond"],
    ["#q=1&%%%=2", "part “q=1”, which this page does not have", "part “%%%=2”, which this page does not have"],
  ]) assert.deepEqual(read(text).problems, problems, text);
});

test("Fragment_KeepsWhatIsThere", () => {
  assert.deepEqual(read("#m=foo&h=L5H3,9.9,5.3,x&s=900-2000&r=7&t=linear").change, { brush: [900, 2000], pinned: [{ layer: 5, head: 3, slot: 0 }], time: "linear" });
  assert.deepEqual(read("#r=0").change, { run: 0, other: 1 });      // a run is not compared with itself
  assert.deepEqual(read("#m=&h="), { change: {}, problems: [] });
  assert.deepEqual(read_fragment("#m=k_norm&h=1.1", { runs: [], metrics: [] } as unknown as Index, state).problems,
                   ["metric “k_norm”, which this page does not have", "head “L1H1”, which this page does not have"]);
});

test("Axes_AreTwoDifferentMetrics", () => {
  const axes = (text: string) => [read(text).change.x, read(text).change.y];      // sink and entropy before
  assert.deepEqual(axes("#x=k_norm&y=sink"), ["k_norm", "sink"]);
  assert.deepEqual(axes("#x=entropy"), ["entropy", "sink"]);      // they change places
  assert.deepEqual(axes("#y=sink"), ["entropy", "sink"]);
  assert.deepEqual(axes("#x=sink&y=sink"), ["sink", "entropy"]);
  assert.deepEqual(two_metrics(["k_pr", "k_norm"]), ["k_norm", "k_pr"]);
  assert.deepEqual(two_metrics(["entropy", "sink", "self"], "self", "nothing"), ["self", "entropy"]);
  assert.deepEqual(two_metrics(["entropy"]), ["entropy", ""]);
  assert.deepEqual(two_metrics([]), ["", ""]);
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
