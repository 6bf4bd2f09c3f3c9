// A map of layers × heads: one cell for each head.
import { Field, share_of } from "../data";
import { key_head } from "../head";
import { number, text_on } from "../scale";
import { Level } from "../source";
import { Colours } from "../theme";
import { font, rule, text } from "./axes";
import { Context } from "./surface";

export interface Grid { left: number; top: number; cell: number; high: number; layers: number; heads: number }
interface Mark { layer: number; head: number; colour: string }

// Cells as large as the width allows; never so small that they cannot be hit.
export function grid_of(layers: number, heads: number, width: number, least: number): Grid {
  const left = 34, most = Math.max(46, Math.min(96, Math.floor(440 / heads)));
  const cell = Math.max(least, Math.min(most, Math.floor((width - left - 4) / heads)));
  const high = Math.max(least, Math.min(cell, 64, Math.max(14, Math.floor(560 / layers))));
  return { left, top: 20, cell, high, layers, heads };
}
export function grid_width(grid: Grid): number {
  return grid.left + grid.cell * grid.heads + 4;
}
export function grid_height(grid: Grid): number {
  return grid.top + grid.high * grid.layers + 4;
}
export function hit(grid: Grid, x: number, y: number): { layer: number; head: number } | null {
  const head = Math.floor((x - grid.left) / grid.cell), layer = Math.floor((y - grid.top) / grid.high);
  return head >= 0 && head < grid.heads && layer >= 0 && layer < grid.layers ? { layer, head } : null;
}

export function colour_of(field: Field, theme: Colours, value: number): string {
  if (!Number.isFinite(value)) return theme.absent;
  const ramp = field.diverging ? theme.divergence : theme.sequence;
  return ramp.texts[ramp.place(share_of(field, value))];
}

function hatch(c: Context, x: number, y: number, width: number, height: number, theme: Colours): void {
  c.fillStyle = theme.absent;
  c.fillRect(x, y, width, height);
  c.save();
  c.beginPath();
  c.rect(x, y, width, height);
  c.clip();
  c.strokeStyle = theme.muted;
  c.lineWidth = 1;
  c.beginPath();
  for (let at = -height; at < width; at += 6) {
    c.moveTo(x + at, y + height);
    c.lineTo(x + at + height, y);
  }
  c.stroke();
  c.restore();
}

export function labels(c: Context, grid: Grid, theme: Colours): void {
  const every = (size: number) => (size >= 18 ? 1 : size >= 9 ? 4 : 8);
  for (let head = 0; head < grid.heads; head += every(grid.cell))
    text(c, String(head), grid.left + (head + 0.5) * grid.cell, 10, theme.soft, { align: "center", size: 11 });
  for (let layer = 0; layer < grid.layers; layer += every(grid.high))
    text(c, `L${layer}`, grid.left - 7, grid.top + (layer + 0.5) * grid.high, theme.soft, { align: "right", size: 11 });
}

// Cells of a field. A key head is as wide as the query heads that read it.
export function cells(c: Context, grid: Grid, field: Field, theme: Colours, letter_of: ((layer: number, head: number) => string) | null): void {
  const width = (grid.cell * grid.heads) / field.heads;
  const gap = grid.high >= 12 ? 1 : 0;
  for (let layer = 0; layer < field.layers; ++layer) {
    for (let head = 0; head < field.heads; ++head) {
      const value = field.values[layer * field.heads + head];
      const x = grid.left + head * width, y = grid.top + layer * grid.high;
      if (!Number.isFinite(value)) hatch(c, x, y, width - gap, grid.high - gap, theme);
      else {
        c.fillStyle = colour_of(field, theme, value);
        c.fillRect(x, y, width - gap, grid.high - gap);
      }
    }
  }
  if (!letter_of || grid.cell < 13 || grid.high < 13) return;
  for (let layer = 0; layer < grid.layers; ++layer) {
    for (let head = 0; head < grid.heads; ++head) {
      const letter = letter_of(layer, head);
      if (!letter) continue;
      const value = field.values[layer * field.heads + key_head(head, field.heads, grid.heads)];
      text(c, letter, grid.left + (head + 0.5) * grid.cell - 0.5, grid.top + (layer + 0.5) * grid.high, text_on(colour_of(field, theme, value)),
           { align: "center", size: Math.min(12, grid.high * 0.62), weight: 600 });
    }
  }
}

export function outline(c: Context, grid: Grid, mark: Mark, theme: Colours, width = 2.5): void {
  const x = grid.left + mark.head * grid.cell - 0.5, y = grid.top + mark.layer * grid.high - 0.5;
  c.lineJoin = "miter";
  c.strokeStyle = theme.paper;
  c.lineWidth = width + 2.5;
  c.strokeRect(x, y, grid.cell, grid.high);
  c.strokeStyle = mark.colour;
  c.lineWidth = width;
  c.strokeRect(x, y, grid.cell, grid.high);
}

// Ticks of levels on the bar, each with its text on a line of its own. The text of a level beyond the bar stands at its end, with an arrow.
export const level_height = 15;
export function bar_levels(c: Context, field: Field, theme: Colours, x: number, y: number, width: number, height: number, levels: Level[]): void {
  const placed = levels.map(({ value, text: words }, i) => {
    const share = share_of(field, value), inside = share >= 0 && share <= 1, left = share < 0.5;
    const at = x + width * Math.max(0, Math.min(1, share)), line = y + height + 26 + i * level_height;
    if (inside) for (const [colour, size] of [[theme.paper, 3], [theme.ink, 1]] as [string, number][]) rule(c, at, y - 3, at, line + 4, colour, size);
    return { words: inside ? words : left ? `← ${words}` : `${words} →`, at: inside ? at + (left ? 5 : -4) : at, line, align: left ? "left" as const : "right" as const };
  });
  for (const { words, at, line, align } of placed) {      // a text covers the ticks of other levels
    c.font = `11px ${font}`;
    const wide = c.measureText(words).width + 2;
    c.fillStyle = theme.paper;
    c.fillRect(align === "left" ? at : at - wide, line - 7, wide, 14);
    text(c, words, at, line, theme.soft, { size: 11, align });
  }
}

// The key of the colours: a bar with the ends, the middle and a mark at the head under the pointer.
export function colour_bar(c: Context, field: Field, theme: Colours, x: number, y: number, width: number, height: number, value: number | null): void {
  const ramp = field.diverging ? theme.divergence : theme.sequence;
  for (let i = 0; i < width; ++i) {
    c.fillStyle = ramp.texts[ramp.place(i / Math.max(1, width - 1))];
    c.fillRect(x + i, y, 1.5, height);
  }
  rule(c, x, y + height, x + width, y + height, theme.muted);
  const stops = field.diverging ? [field.low, 0, field.high]
    : [field.low, field.log ? Math.sqrt(field.low * field.high) : (field.low + field.high) / 2, field.high];
  stops.forEach((stop, i) => {
    const label = field.diverging && stop > 0 ? `+${number(stop, 3)}` : i === 1 && field.log ? `${number(stop, 3)} (log)` : number(stop, 3);
    text(c, label, x + (width * i) / 2, y + height + 11, theme.soft, { size: 11, align: i === 0 ? "left" : i === 1 ? "center" : "right", halo: theme.paper });
  });
  if (value === null || !Number.isFinite(value)) return;
  const share = share_of(field, value), at = x + width * Math.max(0, Math.min(1, share));
  c.fillStyle = theme.ink;
  c.beginPath();
  c.moveTo(at, y - 1);
  c.lineTo(at - 5, y - 8);
  c.lineTo(at + 5, y - 8);
  c.fill();
}
