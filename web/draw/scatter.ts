// Dots.
import { Scale } from "../scale";
import { Colours } from "../theme";
import { Context } from "./surface";

export interface Dot { x: number; y: number; colour: string; sides?: number }

// A circle, or a polygon of about its size with a corner on top, as a path of SVG.
export function shape(sides: number, x: number, y: number, radius: number): string {
  if (!sides) return `M${x - radius} ${y}a${radius} ${radius} 0 1 0 ${2 * radius} 0a${radius} ${radius} 0 1 0 ${-2 * radius} 0`;
  const angle = (i: number) => (2 * Math.PI * i) / sides - Math.PI / 2;
  return `M${Array.from({ length: sides }, (_, i) => `${x + 1.2 * radius * Math.cos(angle(i))} ${y + 1.2 * radius * Math.sin(angle(i))}`).join("L")}Z`;
}

export function dots(c: Context, list: Dot[], radius: number, alpha: number): void {
  c.globalAlpha = alpha;
  for (const dot of list) {
    c.fillStyle = dot.colour;
    const path = new Path2D(dot.sides ? shape(dot.sides, dot.x, dot.y, radius) : undefined);
    if (!dot.sides) path.arc(dot.x, dot.y, radius, 0, 2 * Math.PI);      // faster than text
    c.fill(path);
  }
  c.globalAlpha = 1;
}
export function ring(c: Context, theme: Colours, x: number, y: number, colour: string, radius: number, sides = 0): void {
  c.fillStyle = theme.paper;
  c.fill(new Path2D(shape(sides, x, y, radius)));
  c.fillStyle = colour;
  c.fill(new Path2D(shape(sides, x, y, radius - 1.5)));
}
// Place of the nearest dot within a reach, or −1.
export function nearest_dot(list: Dot[], x: number, y: number, reach = 18): number {
  let best = -1, least = reach * reach;
  list.forEach((dot, i) => {
    const distance = (dot.x - x) ** 2 + (dot.y - y) ** 2;
    if (distance < least) {
      least = distance;
      best = i;
    }
  });
  return best;
}
// y = x, as far as both axes go.
export function diagonal(c: Context, x: Scale, y: Scale, colour: string): void {
  const low = Math.max(x.domain()[0], y.domain()[0]), high = Math.min(x.domain()[1], y.domain()[1]);
  if (!(low < high)) return;
  c.strokeStyle = colour;
  c.lineWidth = 1;
  c.setLineDash([5, 4]);
  c.beginPath();
  c.moveTo(x(low), y(low));
  c.lineTo(x(high), y(high));
  c.stroke();
  c.setLineDash([]);
}
