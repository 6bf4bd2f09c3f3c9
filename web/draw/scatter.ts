// Dots.
import { Scale } from "../scale";
import { Colours } from "../theme";
import { Context } from "./surface";

export interface Dot { x: number; y: number; colour: string }

export function dots(c: Context, list: Dot[], radius: number, alpha: number): void {
  c.globalAlpha = alpha;
  for (const dot of list) {
    c.fillStyle = dot.colour;
    c.beginPath();
    c.arc(dot.x, dot.y, radius, 0, 2 * Math.PI);
    c.fill();
  }
  c.globalAlpha = 1;
}
export function ring(c: Context, theme: Colours, x: number, y: number, colour: string, radius: number): void {
  c.beginPath();
  c.arc(x, y, radius, 0, 2 * Math.PI);
  c.fillStyle = theme.paper;
  c.fill();
  c.beginPath();
  c.arc(x, y, radius - 1.5, 0, 2 * Math.PI);
  c.fillStyle = colour;
  c.fill();
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
