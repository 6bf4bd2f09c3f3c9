// Attention of one head on one text: rows of weights, the picture, and tokens as visible text.
import { weight } from "../block";
import { Colours } from "../theme";
import { word } from "../scale";
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

// The picture: query down, key to the right, square root of the weight as colour.
export function picture(c: Context, theme: Colours, rows: Float64Array, tokens: number, left: number, top: number, side: number): void {
  const image = new ImageData(tokens, tokens);
  const words = new Uint32Array(image.data.buffer);
  for (let i = 0; i < tokens; ++i)
    for (let j = 0; j <= i; ++j) words[i * tokens + j] = theme.sequence.words[theme.sequence.place(Math.sqrt(rows[i * tokens + j]))];
  const blank = word(theme.paper);
  for (let i = 0; i < words.length; ++i) if (words[i] === 0) words[i] = blank;
  const canvas = document.createElement("canvas");
  canvas.width = canvas.height = tokens;
  canvas.getContext("2d")!.putImageData(image, 0, 0);
  c.imageSmoothingEnabled = false;
  c.drawImage(canvas, left, top, side, side);
}
