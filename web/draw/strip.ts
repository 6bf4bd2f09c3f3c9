// Strips: a row for each head, time from left to right on the axis of the curves.
import { Track } from "../data";
import { nearest, word } from "../scale";
import { Colours } from "../theme";
import { Box } from "./axes";
import { image } from "./image";
import { Context } from "./surface";

// Moment at which the head changes fastest: the largest step over a twentieth of the moments.
function time_of_change(track: Track, head: number): number {
  const window = Math.max(1, Math.floor(track.moments / 20));
  const start = head * track.moments;
  let best = -1, at = track.moments;
  for (let i = 0; i + window < track.moments; ++i) {
    const change = Math.abs(track.values[start + i + window] - track.values[start + i]);
    if (change > best) {
      best = change;
      at = i + window / 2;
    }
  }
  return at;
}

export function order_of(track: Track, order: "layer" | "change"): number[] {
  const heads = Array.from({ length: track.layers * track.heads }, (_, head) => head);
  if (order === "layer") return heads;
  const when = heads.map((head) => time_of_change(track, head));
  return heads.sort((a, b) => when[a] - when[b] || a - b);
}

// The moment that each column of pixels shows: the nearest.
function moments_of_columns(xs: Float64Array, box: Box, ratio: number): Int32Array {
  const columns = Math.round((box.right - box.left) * ratio);
  return Int32Array.from({ length: columns }, (_, i) => nearest(xs, box.left + (i + 0.5) / ratio));
}

export function strips(c: Context, theme: Colours, track: Track, order: number[], xs: Float64Array, box: Box): void {
  const ratio = c.getTransform().a;
  const columns = moments_of_columns(xs, box, ratio);
  const absent = word(theme.absent);
  const { low, high, log } = track;
  const span = log ? Math.log(high / low) : high - low;
  const of_moment = new Uint32Array(track.moments);
  image(c, columns.length, order.length, (words) => order.forEach((head, row) => {
    for (let i = 0; i < track.moments; ++i) {
      const value = track.values[head * track.moments + i];
      const share = span > 0 ? (log ? Math.log(value / low) : value - low) / span : 0.5;
      of_moment[i] = value === value ? theme.sequence.words[theme.sequence.place(share)] : absent;
    }
    const start = row * columns.length;
    for (let i = 0; i < columns.length; ++i) words[start + i] = of_moment[columns[i]];
  }), box.left, box.top, box.right - box.left, box.bottom - box.top);
}
