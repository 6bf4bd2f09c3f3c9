// Tracks of the page, decoded when first asked for, and the number of each head that the map, the scatter and the table show.
import { decode } from "./block";
import { problem } from "./dom";
import { key_head } from "./head";
import { extent, nearest } from "./scale";
import { Index, Level, Metric, Run, Series, Source, Tracked } from "./source";
import { Mode, State, Store } from "./state";

// A metric of all heads over time: values [head][moment], head = layer × heads + head of the layer.
export interface Track {
  metric: Metric; run: Run; series: Series; layers: number; heads: number; moments: number;
  step: number[]; tokens: number[]; values: Float32Array; low: number; high: number; log: boolean;
}

// One number for each head.
export interface Field { values: Float64Array; layers: number; heads: number; diverging: boolean; log: boolean; low: number; high: number }

export interface Moments { first: number; last: number }

export class Data {
  readonly index: Index;
  private tracks = new Map<string, Track | null>();            // null: asked for, not there yet, or damaged
  private blocks = new Map<string, Uint8Array | null>();
  private damaged = new Map<string, string>();                 // what cannot be read, and why
  private fields = new Map<string, Field>();
  constructor(private source: Source, private store: Store) {
    this.index = source.index;
  }

  metric(name: string): Metric {
    return this.index.metrics.find((metric) => metric.name === name) ?? this.index.metrics[0];
  }
  run(state: State = this.store.state): Run {
    return this.index.runs[state.run] ?? this.index.runs[0];
  }
  tracked(run: Run, source: string): Tracked | undefined {
    return run.sources.find((one) => one.name === source) ?? run.sources[0];
  }
  has(run: Run, source: string, metric: string): boolean {
    return this.tracked(run, source)?.series.some((series) => series.metric === metric) ?? false;
  }

  // The track, or undefined while it is decoded or where there is none. The store's "data" changes when it is there.
  track(run: Run, source: string, metric: string): Track | undefined {
    const tracked = this.tracked(run, source);
    const series = tracked?.series.find((one) => one.metric === metric);
    if (!tracked || !series) return undefined;
    const key = `${this.index.runs.indexOf(run)}|${tracked.name}|${metric}`;
    const known = this.tracks.get(key);
    if (known !== undefined) return known ?? undefined;
    this.tracks.set(key, null);
    const moments = tracked.step.length;
    this.source.block(series.block).then((bytes) => {
      const values = decode(bytes, series, run.layers * series.heads, moments);
      set_last(values, series.last, moments);
      const [low, high] = extent(values);
      this.tracks.set(key, { metric: this.metric(metric), run, series, layers: run.layers, heads: series.heads, moments, step: tracked.step,
                             tokens: tracked.tokens, values, low, high, log: series.scale === "log" });
      this.touch();
    }).catch((error) => this.fail(series.block, `${metric} of ${run.label}`, error));
    return undefined;
  }
  block(name: string | null): Uint8Array | undefined {
    if (name === null) return undefined;
    const known = this.blocks.get(name);
    if (known !== undefined) return known ?? undefined;
    this.blocks.set(name, null);
    this.source.block(name).then((bytes) => {
      this.blocks.set(name, bytes);
      this.touch();
    }).catch((error) => this.fail(name, `block ${name}`, error));
    return undefined;
  }
  private fail(block: string, what: string, error: unknown): void {
    this.damaged.set(block, `${what} (${error instanceof Error ? error.message : error})`);
    problem("data", `Some data in this page are damaged and cannot be shown: ${Array.from(this.damaged.values()).join("; ")}.`);
    this.touch();
  }
  // Why there is no track.
  why_empty(run: Run, source: string, metric: string): string {
    const series = this.tracked(run, source)?.series.find((one) => one.metric === metric);
    return !series ? "not measured here" : this.damaged.has(series.block) ? "its data in this page are damaged" : "…";
  }
  private touch(): void {
    this.store.set({ data: this.store.state.data + 1 });
  }

  // What the values of a metric can be held against.
  levels(run: Run, metric: string, source = this.store.state.source): Level[] {
    return this.tracked(run, source)?.series.find((one) => one.metric === metric)?.levels ?? [];
  }

  current(state: State = this.store.state): Track | undefined {
    return this.track(this.run(state), state.source, state.metric);
  }

  // What each head shows of a metric in the state's steps.
  field(run: Run, metric: string, mode: Mode, state: State = this.store.state): Field | undefined {
    const track = this.track(run, state.source, metric);
    if (!track) return undefined;
    const other = this.index.runs[state.other];
    const against = mode === "run" && other && corresponds(run, other) ? this.track(other, state.source, metric) : undefined;
    if (mode === "run" && !against) return undefined;
    const key = [this.index.runs.indexOf(run), track.series.block, mode, state.other, state.brush, state.fit].join("|");
    let field = this.fields.get(key);
    if (!field) {
      field = make_field(track, against, mode, state);
      if (this.fields.size > 24) this.fields.clear();
      this.fields.set(key, field);
    }
    return field;
  }
}

// The index holds the last moment exactly.
function set_last(values: Float32Array, last: (number | null)[], moments: number): void {
  if (last.length * moments !== values.length) return;
  last.forEach((value, head) => (values[(head + 1) * moments - 1] = value ?? NaN));
}

// Place of the run that the page starts with, and of which C++ wrote the tables: the first that has tracks.
export function first_tracked(runs: Run[]): number {
  return Math.max(0, runs.findIndex((run) => run.sources.length > 0));
}

// Whether a head of one run is the same head of the other: the same shape, and the same initial weights or the same model.
export function corresponds(a: Run, b: Run): boolean {
  return a.same_heads === b.same_heads && a.layers === b.layers && a.heads.q === b.heads.q && a.heads.k === b.heads.k;
}

// Two different metrics of those that are there: the ones asked for, or others that say much about heads. Empty where there is none.
export function two_metrics(there: string[], x = "", y = ""): [string, string] {
  const choose = (names: string[], not: string) => [...names, ...there].find((name) => name !== not && there.includes(name)) ?? "";
  const first = choose([x, "sink", "k_norm"], "");
  return [first, choose([y, "entropy", "q_norm"], first)];
}

// Another run to compare with: the one that was, or one whose heads correspond.
export function other_of(runs: Run[], run: number, now: number): number {
  if (now !== run && runs[now] && corresponds(runs[run], runs[now])) return now;
  const found = runs.findIndex((one, i) => i !== run && corresponds(runs[run], one));
  return found >= 0 ? found : now !== run ? now : runs.findIndex((_, i) => i !== run);
}

// Places of the moments in the brushed steps; the last moment without a brush.
export function moments_of(step: number[], brush: [number, number] | null): Moments {
  if (!brush) return { first: step.length - 1, last: step.length - 1 };
  let first = 0, last = step.length - 1;
  while (first < step.length && step[first] < brush[0]) ++first;
  while (last >= 0 && step[last] > brush[1]) --last;
  if (first > last) first = last = nearest(step, (brush[0] + brush[1]) / 2);
  return { first, last };
}

// The mean over the moments; of a metric that cannot be averaged (an index) the last value.
export function values_of(track: Track, brush: [number, number] | null): Float64Array {
  const { first, last } = moments_of(track.step, brush);
  const values = new Float64Array(track.layers * track.heads);
  for (let head = 0; head < values.length; ++head) {
    const start = head * track.moments;
    if (track.metric.index || !track.metric.averaged) {
      values[head] = track.values[start + last];
      continue;
    }
    let sum = 0, n = 0;
    for (let i = start + first; i <= start + last; ++i) {
      const value = track.values[i];
      if (value === value) {
        sum += value;
        ++n;
      }
    }
    values[head] = n ? sum / n : NaN;
  }
  return values;
}

function changes_of(track: Track, brush: [number, number] | null): Float64Array {
  const { first, last } = brush ? moments_of(track.step, brush) : { first: 0, last: track.moments - 1 };
  const values = new Float64Array(track.layers * track.heads);
  for (let head = 0; head < values.length; ++head) {
    const start = head * track.moments;
    let from = first;      // the first moment that has a value
    while (from < last && !(track.values[start + from] === track.values[start + from])) ++from;
    values[head] = track.values[start + last] - track.values[start + from];
  }
  return values;
}

export function layer_means(values: Float64Array, layers: number, heads: number): Float64Array {
  const means = new Float64Array(layers);
  for (let layer = 0; layer < layers; ++layer) {
    let sum = 0, n = 0;
    for (let head = 0; head < heads; ++head) {
      const value = values[layer * heads + head];
      if (Number.isFinite(value)) {
        sum += value;
        ++n;
      }
    }
    means[layer] = n ? sum / n : NaN;
  }
  return means;
}

function make_field(track: Track, against: Track | undefined, mode: Mode, state: State): Field {
  const { layers, heads } = track;
  const values = mode === "change" ? changes_of(track, state.brush) : values_of(track, state.brush);
  if (mode === "layer") {
    const means = layer_means(values, layers, heads);
    for (let i = 0; i < values.length; ++i) values[i] -= means[Math.floor(i / heads)];
  }
  if (against) {
    const theirs = values_of(against, state.brush);
    for (let i = 0; i < values.length; ++i) values[i] -= theirs[i];
  }
  const diverging = mode !== "value";
  let [low, high] = extent(values);
  if (diverging) {
    high = Math.max(Math.abs(low), Math.abs(high)) || 1;
    low = -high;
  } else if (state.fit === "run") {
    [low, high] = [track.low, track.high];
  }
  return { values, layers, heads, diverging, log: !diverging && track.log && low > 0, low, high };
}

// Where a value lies on the field's scale, 0 to 1.
export function share_of(field: Field, value: number): number {
  if (!(field.high > field.low)) return 0.5;
  return field.log ? Math.log(value / field.low) / Math.log(field.high / field.low) : (value - field.low) / (field.high - field.low);
}

// Place of a query head in values of a track that may have fewer (key) heads.
export function place_of(run: Run, heads: number, layer: number, head: number): number {
  return layer * heads + key_head(head, heads, run.heads.q);
}

export function third(layer: number, layers: number): number {
  return Math.min(2, Math.floor((3 * layer) / layers));
}
