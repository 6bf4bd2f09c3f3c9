// Attention of one head on one text: rows of weights, the picture, and tokens as visible text.
import { weight } from "../block";
import { Colours } from "../theme";
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

// The picture: query down, key to the right, square root of the weight as colour. Later keys stay blank.
export function picture(c: Context, theme: Colours, rows: Float64Array, tokens: number, left: number, top: number, side: number): void {
  image(c, tokens, tokens, (words) => {
    for (let i = 0; i < tokens; ++i)
      for (let j = 0; j <= i; ++j) words[i * tokens + j] = theme.sequence.words[theme.sequence.place(Math.sqrt(rows[i * tokens + j]))];
  }, left, top, side, side);
}
