// Axes of a plot: faint lines across, labels outside.
import { number, Scale, tokens } from "../scale";
import { Colours } from "../theme";
import { Context } from "./surface";

export interface Box { left: number; top: number; right: number; bottom: number }
export const font = "system-ui, -apple-system, 'Segoe UI', sans-serif";

export function text(c: Context, value: string, x: number, y: number, colour: string, options: { align?: CanvasTextAlign; size?: number; weight?: number; base?: CanvasTextBaseline; halo?: string } = {}): void {
  c.font = `${options.weight ?? 400} ${options.size ?? 12}px ${font}`;
  c.textAlign = options.align ?? "left";
  c.textBaseline = options.base ?? "middle";
  if (options.halo) {
    c.strokeStyle = options.halo;
    c.lineWidth = 3.5;
    c.lineJoin = "round";
    c.strokeText(value, x, y);
  }
  c.fillStyle = colour;
  c.fillText(value, x, y);
}

// Half pixels make lines of one pixel crisp.
export function rule(c: Context, x0: number, y0: number, x1: number, y1: number, colour: string, width = 1): void {
  c.strokeStyle = colour;
  c.lineWidth = width;
  c.beginPath();
  c.moveTo(Math.round(x0) + 0.5, Math.round(y0) + 0.5);
  c.lineTo(Math.round(x1) + 0.5, Math.round(y1) + 0.5);
  c.stroke();
}

// As many ticks as there is room for, each with at least so many pixels.
function ticks(scale: Scale, room: number, least: number): number[] {
  return scale.ticks(Math.max(2, Math.floor(room / least)));
}

export function y_axis(c: Context, theme: Colours, box: Box, y: Scale, least = 34, write: (value: number) => string = number): void {
  for (const tick of ticks(y, box.bottom - box.top, least)) {
    rule(c, box.left, y(tick), box.right, y(tick), theme.grid);
    text(c, write(tick), box.left - 7, y(tick), theme.soft, { align: "right", size: 11 });
  }
}

export function x_axis(c: Context, theme: Colours, box: Box, x: Scale, label: string, write: (value: number) => string = tokens, grid = true): void {
  let end = -Infinity;
  rule(c, box.left, box.bottom, box.right, box.bottom, theme.muted);
  for (const tick of ticks(x, box.right - box.left, 96)) {
    const at = x(tick);
    if (grid) rule(c, at, box.top, at, box.bottom, theme.grid);
    rule(c, at, box.bottom, at, box.bottom + 4, theme.muted);
    c.font = `11px ${font}`;
    const half = c.measureText(write(tick)).width / 2;
    if (at - half < end + 8) continue;
    end = at + half;
    text(c, write(tick), Math.min(at, box.right + 14 - half), box.bottom + 13, theme.soft, { align: "center", size: 11 });
  }
  if (label) text(c, label, box.right, box.bottom + 28, theme.soft, { align: "right", size: 11 });
}
