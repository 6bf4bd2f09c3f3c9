// The store: who is told of what.
import { strict as assert } from "node:assert";
import { test } from "node:test";
import { State, Store } from "../state";

test("Store_TellsUntilTheListenerEnds", () => {
  const frames: (() => void)[] = [];
  (globalThis as unknown as { requestAnimationFrame: (call: () => void) => void }).requestAnimationFrame = (call) => frames.push(call);
  const store = new Store({ run: 0, metric: "entropy" } as State);
  const heard: string[] = [];
  const off = store.on(["run"], () => heard.push("first"));
  store.on(["run"], () => heard.push("second"));
  store.on(["metric"], () => heard.push("metric"));
  store.set({ run: 1 });
  frames.pop()!();
  off();
  store.set({ run: 2 });
  frames.pop()!();
  assert.deepEqual(heard, ["first", "second", "second"]);
});
