// One store for all views. A change is told once a frame, with the names of what changed.
import { Head } from "./head";

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

  // Returns what ends it.
  on(keys: Key[], call: Listener): () => void {
    const listener = { keys, call };
    this.listeners.push(listener);
    return () => {
      this.listeners = this.listeners.filter((one) => one !== listener);
    };
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
