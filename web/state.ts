// One store for all views. A change is told once a frame, with the names of what changed.

export interface Head { layer: number; head: number }
export interface Pin extends Head { slot: number }        // the slot is the place of its colour
export type Mode = "value" | "layer" | "change" | "run";
export interface State {
  run: number; other: number; source: string; metric: string; mode: Mode;
  fit: "shown" | "run";                                    // colour scale of the map: the values shown, or all of the run
  brush: [number, number] | null;                          // steps; null: the last moment
  pinned: Pin[]; hover: Head | null; step: number | null;  // step under the pointer
  x: string; y: string; colour: "depth" | "role"; order: "layer" | "change"; time: "linear" | "log"; theme: "light" | "dark"; data: number;
}
export type Key = keyof State;
export const most_pins = 6;

type Listener = (state: State, changed: Set<Key>) => void;

export class Store {
  private listeners: { keys: Key[]; call: Listener }[] = [];
  private changed = new Set<Key>();
  private waiting = false;
  constructor(public state: State) {}

  on(keys: Key[], call: Listener): void {
    this.listeners.push({ keys, call });
  }
  set(change: Partial<State>): void {
    const state = this.state as unknown as Record<string, unknown>;
    for (const [key, value] of Object.entries(change)) {
      if (same(state[key], value)) continue;
      state[key] = value;
      this.changed.add(key as Key);
    }
    if (this.changed.size === 0 || this.waiting) return;
    this.waiting = true;
    requestAnimationFrame(() => this.tell());
  }
  tell(): void {
    this.waiting = false;
    const changed = this.changed;
    this.changed = new Set();
    for (const { keys, call } of this.listeners) if (keys.some((key) => changed.has(key))) call(this.state, changed);
  }
  pin(head: Head): void {
    const pinned = this.state.pinned;
    if (is_pinned(pinned, head)) return this.set({ pinned: pinned.filter((pin) => !same(place(pin), place(head))) });
    const kept = pinned.length < most_pins ? pinned : pinned.slice(1);
    let slot = 0;
    while (kept.some((pin) => pin.slot === slot)) ++slot;
    this.set({ pinned: [...kept, { layer: head.layer, head: head.head, slot }] });
  }
}

function same(a: unknown, b: unknown): boolean {
  return a === b || JSON.stringify(a) === JSON.stringify(b);
}
function place(head: Head): [number, number] {
  return [head.layer, head.head];
}
export function is_pinned(pinned: Pin[], head: Head): Pin | undefined {
  return pinned.find((pin) => pin.layer === head.layer && pin.head === head.head);
}
// What every view marks: the pinned heads, and the head under the pointer if it is not one of them.
export function marked(state: State): (Head & { slot?: number })[] {
  const { pinned, hover } = state;
  return hover && !is_pinned(pinned, hover) ? [...pinned, hover] : pinned;
}
export function head_name(head: Head): string {
  return `L${head.layer}H${head.head}`;
}

const modes: Mode[] = ["value", "layer", "change", "run"];

// "#m=k_norm&h=3.1,5.0&s=100-900" as a change of the state. Unknown parts are left out.
export function parse_fragment(text: string): Partial<State> {
  const change: Partial<State> = {};
  for (const [key, value] of new URLSearchParams(text.replace(/^#/, ""))) {
    const number = Number(value);
    if (key === "m") change.metric = value;
    else if (key === "x") change.x = value;
    else if (key === "y") change.y = value;
    else if (key === "f") change.source = value;
    else if (key === "r" && Number.isInteger(number)) change.run = number;
    else if (key === "o" && Number.isInteger(number)) change.other = number;
    else if (key === "c" && modes.includes(value as Mode)) change.mode = value as Mode;
    else if (key === "t" && value === "log") change.time = "log";
    else if (key === "s") {
      const found = /^(\d+)-(\d+)$/.exec(value);
      if (found) change.brush = [Number(found[1]), Number(found[2])];
    } else if (key === "h") {
      const pins = value.split(",").map((one) => /^L?(\d+)[.H](\d+)$/.exec(one)).filter((found) => found !== null).slice(0, most_pins);
      change.pinned = pins.map((found, slot) => ({ layer: Number(found![1]), head: Number(found![2]), slot }));
    }
  }
  return change;
}

export function write_fragment(state: State, first_source = state.source): string {
  const parts = [`m=${encodeURIComponent(state.metric)}`];
  if (state.pinned.length) parts.push(`h=${state.pinned.map((pin) => `${pin.layer}.${pin.head}`).join(",")}`);
  if (state.brush) parts.push(`s=${state.brush[0]}-${state.brush[1]}`);
  if (state.source !== first_source) parts.push(`f=${encodeURIComponent(state.source)}`);
  if (state.run) parts.push(`r=${state.run}`);
  if (state.mode === "run") parts.push(`o=${state.other}`);
  if (state.mode !== "value") parts.push(`c=${state.mode}`);
  if (state.time !== "linear") parts.push(`t=${state.time}`);
  parts.push(`x=${encodeURIComponent(state.x)}`, `y=${encodeURIComponent(state.y)}`);
  return `#${parts.join("&")}`;
}
