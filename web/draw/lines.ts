// Curves over time.
import { Moments, Track } from "../data";
import { axis, Scale } from "../scale";
import { Level } from "../source";
import { Colours } from "../theme";
import { Box, rule, text } from "./axes";
import { Context } from "./surface";

// Position of tokens. On a logarithmic axis, zero tokens lie on the left edge.
export function time_scale(tokens: ArrayLike<number>, box: { left: number; right: number }, log: boolean): Scale {
  const last = tokens[tokens.length - 1] ?? 1;
  let first = tokens[0] ?? 0;
  if (log) for (let i = 0; i < tokens.length && !(first > 0); ++i) first = tokens[i];
  return axis(first, last, [box.left, box.right], log && first > 0);
}
export function positions(tokens: ArrayLike<number>, x: Scale): Float64Array {
  const first = x.domain()[0];
  return Float64Array.from(tokens, (value) => x(Math.max(first, value)));
}

// One curve of the values from `start` on; a missing value makes a gap, a lonely value a dot.
export function curve(c: Context, xs: Float64Array, values: ArrayLike<number>, start: number, y: Scale): void {
  let open = false;
  for (let i = 0; i < xs.length; ++i) {
    const value = values[start + i];
    if (!Number.isFinite(value)) {
      open = false;
      continue;
    }
    const at = y(value);
    if (open) c.lineTo(xs[i], at);
    else {
      c.moveTo(xs[i], at);
      if (!Number.isFinite(values[start + i + 1]) || i + 1 === xs.length) c.lineTo(xs[i] + 0.01, at);
    }
    open = true;
  }
}

// All heads, a third of the layers in one colour. It yields so that a thousand curves do not hold up a frame.
export function* all_curves(c: Context, track: Track, xs: Float64Array, y: Scale, colour_of: (layer: number) => string): Generator<void> {
  const heads = track.layers * track.heads;
  c.lineWidth = heads > 200 ? 0.8 : 1.2;
  c.lineJoin = "round";
  const at_once = Math.max(1, Math.floor(6000 / track.moments));
  for (let i = 0; i < heads; ++i) {
    // Heads of different layers alternate, so that no layer covers the others.
    const head = (i % track.layers) * track.heads + Math.floor(i / track.layers);
    c.strokeStyle = colour_of(Math.floor(head / track.heads));
    c.beginPath();
    curve(c, xs, track.values, head * track.moments, y);
    c.stroke();
    if (i % at_once === at_once - 1) yield;
  }
}

// A curve that stands out: a halo of paper below it.
export function strong_curve(c: Context, theme: Colours, xs: Float64Array, values: ArrayLike<number>, start: number, y: Scale, colour: string, width = 2.2): void {
  c.lineJoin = c.lineCap = "round";
  for (const [stroke, size] of [[theme.paper, width + 2.5], [colour, width]] as [string, number][]) {
    c.strokeStyle = stroke;
    c.lineWidth = size;
    c.beginPath();
    curve(c, xs, values, start, y);
    c.stroke();
  }
}

export function band(c: Context, xs: Float64Array, low: ArrayLike<number>, high: ArrayLike<number>, y: Scale, colour: string): void {
  c.fillStyle = colour;
  c.beginPath();
  for (let i = 0; i < xs.length; ++i) if (Number.isFinite(high[i])) c.lineTo(xs[i], y(high[i]));
  for (let i = xs.length - 1; i >= 0; --i) if (Number.isFinite(low[i])) c.lineTo(xs[i], y(low[i]));
  c.closePath();
  c.fill();
}

// What is outside the brush is dimmed.
export function brush_shade(c: Context, theme: Colours, box: Box, xs: Float64Array, moments: Moments | null): void {
  if (!moments) return;
  const from = Math.max(box.left, xs[moments.first]), to = Math.min(box.right, xs[moments.last]);
  c.globalAlpha = 0.62;
  c.fillStyle = theme.paper;
  c.fillRect(box.left, box.top, Math.max(0, from - box.left - 1), box.bottom - box.top);
  c.fillRect(to + 1, box.top, Math.max(0, box.right - to), box.bottom - box.top);
  c.globalAlpha = 1;
  for (const at of [from, to]) {
    rule(c, at, box.top, at, box.bottom, theme.ink);
    c.fillStyle = theme.ink;
    c.fillRect(Math.round(at) - 2, (box.top + box.bottom) / 2 - 9, 5, 18);
  }
}

// Dashed lines at levels, with their texts on the left or on the right. The text of a level beyond the axis stands at its end, with an arrow.
export function level_lines(c: Context, theme: Colours, box: Box, y: Scale, levels: Level[], side: "left" | "right" = "left"): void {
  const [low, high] = y.domain();
  const labels = levels.map(({ value, text }) => {
    const at = y(Math.max(low, Math.min(high, value))), beyond = value > high ? "↑ " : value < low ? "↓ " : "";
    c.setLineDash([4, 4]);
    if (!beyond) rule(c, box.left, at, box.right, at, theme.soft);
    c.setLineDash([]);
    return { y: at < box.top + 16 ? at + 9 : at - 8, text: beyond + text, colour: theme.soft };
  });
  end_labels(c, labels, side === "left" ? box.left + 4 : box.right - 4, box, { size: 11, weight: 400, halo: theme.paper, align: side });
}

// Labels at the right end of curves, moved apart so that none covers another.
export function end_labels(c: Context, labels: { y: number; text: string; colour: string }[], x: number, box: Box,
                           style: { size: number; weight: number; halo?: string; align?: CanvasTextAlign } = { size: 12, weight: 600 }): void {
  const sorted = [...labels].sort((a, b) => a.y - b.y);
  let last = box.top - 8;
  for (const label of sorted) {
    label.y = Math.max(label.y, last + style.size + 2);
    last = label.y;
  }
  let over = Math.max(0, last - box.bottom);
  for (let i = sorted.length - 1; i >= 0 && over > 0; --i) {
    sorted[i].y -= over;
    if (i > 0) over = Math.max(0, sorted[i - 1].y - (sorted[i].y - style.size - 2));
  }
  for (const label of sorted) text(c, label.text, x, label.y, label.colour, style);
}
