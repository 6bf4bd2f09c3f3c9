// Attention of one head on one text: rows of weights, the picture, and tokens as visible text.
import { weight } from "../block";
import { axis } from "../scale";
import { Colours } from "../theme";
import { rule, text } from "./axes";
import { image } from "./image";
import { Context } from "./surface";

// White space and bytes as signs that can be seen.
export function visible(piece: string): string {
  return piece.replace(/ /g, "·").replace(/\r?\n/g, "⏎").replace(/\t/g, "⇥") || "∅";
}

// Weights [query][key]. Without the first token the others are scaled to sum to 1; the first row then stays empty.
export function weights(triangle: Uint8Array, tokens: number, without_first: boolean): Float64Array {
  const rows = new Float64Array(tokens * tokens);
  for (let i = 0; i < tokens; ++i) {
    let sum = 0;
    for (let j = 0; j <= i; ++j) {
      const value = without_first && j === 0 ? 0 : weight(triangle, i, j);
      rows[i * tokens + j] = value;
      sum += value;
    }
    // Rounding to bytes moves the sum a little from 1.
    if (sum > 0) for (let j = 0; j <= i; ++j) rows[i * tokens + j] /= sum;
  }
  return rows;
}

// The share that uniform attention would give a key: query i can read i + 1 keys, or i without the first.
export function uniform(query: number, without_first: boolean): number {
  return 1 / (without_first ? Math.max(1, query) : query + 1);
}

export type Direction = "to" | "from";
// What each token gets from the chosen one ("to"), or gives to it ("from"); when none is chosen, its share of all attention.
export function shares(tokens: number, chosen: number | null, direction: Direction, of: (query: number, key: number) => number): number[] {
  return Array.from({ length: tokens }, (_, i) => {
    if (chosen !== null && (direction === "to" ? i > chosen : i < chosen)) return 0;
    if (chosen !== null) return direction === "to" ? of(chosen, i) : of(i, chosen);
    let sum = 0;
    for (let query = i; query < tokens; ++query) sum += of(query, i);
    return sum / tokens;
  });
}

// The picture: query down, key to the right, square root of the weight as colour. Later keys stay blank.
export function picture(c: Context, theme: Colours, rows: Float64Array, tokens: number, left: number, top: number, side: number): void {
  image(c, tokens, tokens, (words) => {
    for (let i = 0; i < tokens; ++i)
      for (let j = 0; j <= i; ++j) words[i * tokens + j] = theme.sequence.words[theme.sequence.place(Math.sqrt(rows[i * tokens + j]))];
  }, left, top, side, side);
}

// Where the picture lies on its canvas.
export interface Square { left: number; top: number; side: number }
export function square_of(width: number): Square {
  return { left: 46, top: 6, side: width - 52 };
}
export function square_height(width: number): number {
  return square_of(width).side + 44;
}

// Axes around the picture: positions of tokens, those that are pointed at in bold.
export function token_axes(c: Context, theme: Colours, tokens: number, { left, top, side }: Square, query: number | null, key: number | null): void {
  const scale = axis(-0.5, tokens - 0.5, [0, side]), bottom = top + side;
  rule(c, left - 1, top, left - 1, bottom, theme.muted);
  rule(c, left - 1, bottom, left + side, bottom, theme.muted);
  const room = (tick: number, pointed: number | null) => pointed === null || Math.abs(scale(tick) - scale(pointed)) > 18;
  for (const tick of scale.ticks(Math.max(2, side / 45))) {
    if (!Number.isInteger(tick)) continue;
    rule(c, left - 5, top + scale(tick), left - 1, top + scale(tick), theme.muted);
    rule(c, left + scale(tick), bottom, left + scale(tick), bottom + 4, theme.muted);
    if (room(tick, query)) text(c, String(tick), left - 8, top + scale(tick), theme.soft, { align: "right", size: 11 });
    if (room(tick, key)) text(c, String(tick), left + scale(tick), bottom + 13, theme.soft, { align: "center", size: 11 });
  }
  const bold = { size: 11, weight: 700 };
  if (query !== null) text(c, String(query), left - 8, top + scale(query), theme.ink, { ...bold, align: "right" });
  if (key !== null) text(c, String(key), left + scale(key), bottom + 13, theme.ink, { ...bold, align: "center" });
  text(c, "key (is read)", left + side, bottom + 30, theme.soft, { align: "right", size: 11 });
  c.save();
  c.translate(8, top);
  c.rotate(-Math.PI / 2);
  text(c, "query (reads)", 0, 0, theme.soft, { align: "right", size: 11 });
  c.restore();
}

// The key of the picture's colours, in the corner that later keys leave blank.
export function weight_key(c: Context, theme: Colours, { left, top, side }: Square, value: number | null): void {
  const wide = Math.min(140, side * 0.5), x = left + side - wide - 8, y = top + 20;
  text(c, "share of attention", x + wide, top + 6, theme.soft, { align: "right", size: 11 });
  image(c, 256, 1, (words) => words.forEach((_, i) => (words[i] = theme.sequence.words[theme.sequence.place(i / 255)])), x, y, wide, 8);
  for (const share of [0, 0.1, 0.4, 1]) {
    const at = x + wide * Math.sqrt(share);
    rule(c, at, y + 8, at, y + 11, theme.muted);
    text(c, String(share), at, y + 19, theme.soft, { align: "center", size: 11 });
  }
  if (value !== null) rule(c, x + wide * Math.sqrt(value), y - 4, x + wide * Math.sqrt(value), y + 11, theme.ink, 2);
}
