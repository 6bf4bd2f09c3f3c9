// Where the numbers come from. A report embeds them; a server will send them.
import { Coding, inflate } from "./block";

export interface Theme {
  paper: string; ink: string; muted: string; grid: string; absent: string;
  categories: string[]; depth: string[]; sequential: string[]; ordered: string[]; diverging: string[];
}
export interface Metric { name: string; group: string; kind: "q" | "k"; unit: string; meaning: string; averaged: boolean; index: boolean }
export interface Role { name: string; letter: string; text: string }
export interface Level { value: number; text: string; role?: boolean }      // what a value can be held against; role: what a role asks for
export interface Series extends Coding { metric: string; heads: number; block: string; error: number | null; last: (number | null)[]; levels?: Level[] }
export interface Tracked { name: string; step: number[]; tokens: number[]; of: number; series: Series[] }
export interface Test { role: number; metric: string; score: string; minimum: number }
export interface Score { layer: number; head: number; role: number | null; since: number | null; values: (number | null)[] }      // of each test
export interface Roles {
  definition: string; source: string; step: number[]; tokens: number[]; of_head: { block: string } | null; tests: Test[]; scores: Score[];
  transitions: { step: number; tokens: number; layer: number; head: number; from: number | null; to: number | null }[];
}
export interface Attention { texts: { pieces: string[] }[]; heads: [number, number][]; blocks: (string | null)[][] }
export interface Example {
  head: number; quantile: number | null; strength: number | null; document: number | null; query: number; key: number; query_at: number | null; key_at: number | null;
  pieces: string[]; weights: number[];
}
export interface Plasticity {
  heads: { layer: number[]; head: number[]; ap: (number | null)[]; low: (number | null)[]; high: (number | null)[] };
  cells: { block: string; rows: number; columns: string[] } | null;
}
export interface Comparison {
  names: string[]; layer: number[]; head: number[]; difference: (number | null)[]; low: (number | null)[]; high: (number | null)[]; significant: (number | boolean | null)[];
}
export interface Change { share_removed?: number; bits?: number; loss: number | null; lowest?: number | null; highest?: number | null }
export interface Surgery {
  unmodified_loss: number | null; uniform_attention_loss: number | null; remove?: { [way: string]: Change[] }; quantise?: { [way: string]: Change[] };
}
export interface Run {
  name: string; label: string; command: string; status: string; condition: { tag: string; letter: string } | null; seed: number | null;
  layers: number; heads: { q: number; k: number }; d_k: number; same_heads: number; sources: Tracked[]; roles: Roles | null;
  steps: { block: string; rows: number; columns: string[] } | null;
  probes: { step: number[]; tokens: number[]; loss: (number | null)[]; val_loss: (number | null)[] } | null;
  levels: { name: string; value: number }[] | null;
  events: { time: string | null; step: number | null; tokens: number | null; kind: string; text: string }[] | null;
  gains: (Coding & { block: string; step: number[]; tokens: number[]; layers: number; d_k: number }) | null;
  attention: Attention | null;
  examples: { blocks: { [layer: string]: string } } | null;
  plasticity: Plasticity | null;
  comparison: Comparison | null;
  surgery: Surgery | null;
}
export interface Effect {
  name: string; pair: string; difference: number | null; low: number | null; high: number | null; word?: string; outcome?: string;
  p_holm?: number | null; seeds?: number;
}
export interface Study {
  tau: number; conclusion: string; sentence: string; descriptive: boolean; seeds: (string | number)[];
  conditions: { tag: string; letter: string; name: string; mean: number | null; low: number | null; high: number | null; values: (number | null)[] }[];
  effects: Effect[];
  over_time: { tokens: number[]; effects: { [name: string]: { difference: (number | null)[]; low: (number | null)[]; high: (number | null)[] } } } | null;
  by_layer: { [name: string]: { difference: (number | null)[]; low: (number | null)[]; high: (number | null)[] } } | null;
}
export interface Index {
  format: number; version: string; title: string; themes: { light: Theme; dark: Theme }; metrics: Metric[]; roles: Role[]; runs: Run[];
  study: Study | null; reduced: { bits: number; moments: number; left_out: string[] } | null;
}

export interface Source {
  index: Index;
  block(name: string): Promise<Uint8Array>;
}

// The page's own <script> elements.
export function embedded(): Source | null {
  const text = document.getElementById("index")?.textContent;
  if (!text) return null;
  const index = JSON.parse(text) as Index;
  return {
    index,
    block(name) {
      const element = document.getElementById(name);
      if (!element) return Promise.reject(new Error(`the page has no block ${name}`));
      return inflate((element.textContent ?? "").trim());
    },
  };
}
