// The view as the URL's fragment: "#m=k_norm&h=3.1,5.0&s=100-900".
import { corresponds, other_of, two_metrics } from "./data";
import { head_name, parse_head } from "./head";
import { Index, Run } from "./source";
import { is_pinned, Mode, most_pins, Pin, State } from "./state";

const modes: Mode[] = ["value", "layer", "change", "run"];

export function write_fragment(state: State, first_source = state.source, first_run = 0): string {
  const parts: string[] = [];
  const add = (key: string, value: string) => value && parts.push(`${key}=${encodeURIComponent(value)}`);
  add("m", state.metric);
  if (state.pinned.length) parts.push(`h=${state.pinned.map((pin) => `${pin.layer}.${pin.head}`).join(",")}`);
  if (state.brush) parts.push(`s=${state.brush[0]}-${state.brush[1]}`);
  if (state.source !== first_source) add("f", state.source);
  if (state.run !== first_run) parts.push(`r=${state.run}`);
  if (state.mode === "run") parts.push(`o=${state.other}`);
  if (state.mode !== "value") parts.push(`c=${state.mode}`);
  if (state.time !== "linear") parts.push(`t=${state.time}`);
  add("x", state.x);
  add("y", state.y);
  return `#${parts.join("&")}`;
}

// What the fragment changes in the state, and in words what it names in vain. Each part is read by a function that returns the problem, or nothing.
export function read_fragment(text: string, index: Index, state: State): { change: Partial<State>; problems: string[] } {
  const change: Partial<State> = {}, problems: string[] = [];
  const given = new Map(Array.from(new URLSearchParams(text.replace(/^#/, ""))).filter(([, value]) => value !== ""));
  const take = (key: string, read: (value: string) => string) => {
    const value = given.get(key), problem = value !== undefined && read(value);
    if (problem) problems.push(problem);
    given.delete(key);
  };
  const absent = (what: string, value: string) => `${what} “${value}”, which this page does not have`;
  for (const [key, name] of [["r", "run"], ["o", "other"]] as const) take(key, (value) => {
    if (!index.runs[Number(value)]) return absent("run", value);
    change[name] = Number(value);
    return "";
  });
  const at = change.run ?? state.run, run = index.runs[at] as Run | undefined;
  if (run && change.run !== undefined) change.other ??= other_of(index.runs, at, state.other);
  take("f", (value) => {
    if (!run?.sources.some((source) => source.name === value)) return absent("measurement", value);
    change.source = value;
    return "";
  });
  const source = run?.sources.find((one) => one.name === (change.source ?? state.source)) ?? run?.sources[0];
  for (const [key, name] of [["m", "metric"], ["x", "x"], ["y", "y"]] as const) take(key, (value) => {
    if (!index.metrics.some((metric) => metric.name === value)) return absent("metric", value);
    if (!source?.series.some((series) => series.metric === value)) return `metric “${value}”, which was not measured here`;
    change[name] = value;
    return "";
  });
  if (change.x || change.y) {
    if (change.x === change.y) problems.push(`metric “${change.x}” for both axes of the scatter`);
    [change.x, change.y] = two_metrics(source!.series.map((series) => series.metric), change.x ?? (change.y === state.x ? state.y : state.x), change.y ?? (change.x === state.y ? state.x : state.y));
  }
  take("c", (value) => {
    if (!modes.includes(value as Mode)) return absent("colour", value);
    const other = index.runs[change.other ?? state.other];
    if (value === "run" && !(run && other && corresponds(run, other))) return "the difference of two runs whose heads do not correspond";
    change.mode = value as Mode;
    return "";
  });
  take("t", (value) => {
    if (value !== "log" && value !== "linear") return absent("time axis", value);
    change.time = value;
    return "";
  });
  take("s", (value) => {
    const found = /^(\d+)-(\d+)$/.exec(value), first = Number(found?.[1]), last = Number(found?.[2]), steps = source?.step ?? [];
    if (!found || first > last) return `steps “${value}”, which are not steps such as 100-900`;
    if (!steps.length || last < steps[0] || first > steps[steps.length - 1]) return `steps ${value}, but there are steps ${steps[0] ?? 0} to ${steps[steps.length - 1] ?? 0}`;
    change.brush = [first, last];
    return "";
  });
  take("h", (value) => {
    const pins: Pin[] = [], wrong: string[] = [];
    for (const one of value.split(",").filter(Boolean)) {
      const found = parse_head(one), pin = found && { ...found, slot: pins.length };
      if (!pin) wrong.push(`head “${one}”, which is not a head such as 3.1`);
      else if (!run || pin.layer >= run.layers || pin.head >= run.heads.q) wrong.push(absent("head", head_name(pin)));
      else if (!is_pinned(pins, pin)) pins.push(pin);
    }
    if (pins.length > most_pins) wrong.push(`${pins.length} heads, of which the first ${most_pins} are shown`);
    change.pinned = pins.slice(0, most_pins);
    return wrong.join("; ");
  });
  given.forEach((value, key) => problems.push(absent("part", `${key}=${value}`)));
  return { change, problems };
}
