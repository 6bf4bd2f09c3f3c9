// A picture of one pixel for each value, stretched without smoothing. `fill` writes its words (scale.ts: word), row by row.
import { Context } from "./surface";

export function image(c: Context, columns: number, rows: number, fill: (words: Uint32Array) => void, left: number, top: number, width: number, height: number): void {
  const data = new ImageData(columns, rows);
  fill(new Uint32Array(data.data.buffer));
  const canvas = document.createElement("canvas");
  canvas.width = columns;
  canvas.height = rows;
  canvas.getContext("2d")!.putImageData(data, 0, 0);
  c.imageSmoothingEnabled = false;
  c.drawImage(canvas, left, top, width, height);
}
