/*! Every page holds parts of d3-array. Copyright 2010-2021 Mike Bostock. ISC licence:
Permission to use, copy, modify, and/or distribute this software for any purpose with or without fee is hereby granted, provided that the above copyright notice and this permission notice appear in all copies.
THE SOFTWARE IS PROVIDED "AS IS" AND THE AUTHOR DISCLAIMS ALL WARRANTIES WITH REGARD TO THIS SOFTWARE INCLUDING ALL IMPLIED WARRANTIES OF MERCHANTABILITY AND FITNESS. IN NO EVENT SHALL THE AUTHOR BE LIABLE FOR ANY SPECIAL, DIRECT, INDIRECT, OR CONSEQUENTIAL DAMAGES OR ANY DAMAGES WHATSOEVER RESULTING FROM LOSS OF USE, DATA OR PROFITS, WHETHER IN AN ACTION OF CONTRACT, NEGLIGENCE OR OTHER TORTIOUS ACTION, ARISING OUT OF OR IN CONNECTION WITH THE USE OR PERFORMANCE OF THIS SOFTWARE.
*/
// Scales, colours and numbers as text.
import { bisectLeft, ticks as even_ticks } from "d3-array";

// A value in four digits, with a true minus sign.
export function number(value: number | null | undefined, digits = 4): string {
  if (value === null || value === undefined || !Number.isFinite(value)) return "–";
  const size = Math.abs(value);
  const text = value === 0 || (size >= 1e-3 && size < 1e5) ? String(Number(value.toPrecision(digits))) : value.toExponential(Math.max(1, digits - 2)).replace(/\.?0+e/, "e");
  return text.replace("-", "−").replace(/e−?[+]?/, (part) => (part.includes("−") ? "e−" : "e"));
}
export function signed(value: number): string {
  return value > 0 ? `+${number(value)}` : number(value);
}
export function count(value: number): string {
  return Math.round(value).toLocaleString("en-US");
}
// 4915200 as "4.92 M".
export function tokens(value: number): string {
  for (const [unit, size] of [["T", 1e12], ["B", 1e9], ["M", 1e6], ["k", 1e3]] as [string, number][])
    if (value >= size) return `${Number((value / size).toPrecision(3))} ${unit}`;
  return String(Math.round(value));
}

// Position of a value on an axis, and its ticks: about `many`.
export interface Scale { (value: number): number; domain(): [number, number]; ticks(many: number): number[] }

// Equal ends are moved apart so that a constant curve lies in the middle.
export function axis(low: number, high: number, range: [number, number], log = false): Scale {
  if (!(low <= high)) [low, high] = [0, 1];
  if (low === high) [low, high] = log ? [low / 2, high * 2] : [low - (Math.abs(low) || 1) * 0.1, high + (Math.abs(high) || 1) * 0.1];
  const logarithmic = log && low > 0, of = logarithmic ? Math.log : (value: number) => value;
  const first = of(low), each = (range[1] - range[0]) / (of(high) - first);
  return Object.assign((value: number) => range[0] + (of(value) - first) * each, {
    domain: (): [number, number] => [low, high], ticks: (many: number) => (logarithmic ? log_ticks(low, high, many) : linear_ticks(low, high, many)),
  });
}

// One tick says nothing about distances.
function linear_ticks(low: number, high: number, many: number): number[] {
  const ticks = even_ticks(low, high, many);
  return ticks.length < 2 && many < 9 ? linear_ticks(low, high, many + 1) : ticks.slice(0, 100);
}
// 1, 2 and 5 times the powers of ten; powers alone, or every second or third, where these are too many; even ticks where they are too few.
function log_ticks(low: number, high: number, many: number): number[] {
  const first = Math.floor(Math.log10(low)), last = Math.floor(Math.log10(high));
  const ticks = (digits: number[], every: number) => Array.from({ length: last - first + 1 }, (_, i) => first + i).filter((power) => power % every === 0)
    .flatMap((power) => digits.map((digit) => Number(`${digit}e${power}`))).filter((tick) => tick >= low && tick <= high);
  const fine = ticks([1, 2, 5], 1);
  if (fine.length < 3) return linear_ticks(low, high, many);
  return fine.length <= 1.5 * many ? fine : ticks([1], Math.ceil((last - first + 1) / (1.5 * many)));
}

// The range with the values that lie near it, within half of its width.
export function widened([low, high]: [number, number], values: number[], log: boolean): [number, number] {
  const place = (value: number) => (log ? Math.log(value) : value), room = (place(high) - place(low)) / 2;
  const near = values.filter((value) => place(value) >= place(low) - room && place(value) <= place(high) + room);
  return [Math.min(low, ...near), Math.max(high, ...near)];
}

export function extent(values: ArrayLike<number | null>): [number, number] {
  let low = Infinity, high = -Infinity;
  for (let i = 0; i < values.length; ++i) {
    const value = values[i];
    if (value === null || !Number.isFinite(value)) continue;
    if (value < low) low = value;
    if (value > high) high = value;
  }
  return low <= high ? [low, high] : [NaN, NaN];
}

// Index of the value nearest to x in a sorted list.
export function nearest(values: ArrayLike<number>, x: number): number {
  const i = bisectLeft(values, x);
  if (i <= 0) return 0;
  if (i >= values.length) return values.length - 1;
  return x - values[i - 1] < values[i] - x ? i - 1 : i;
}

// 1,024 colours between the stops, straight lines in RGB, as figures have them.
export class Ramp {
  readonly words: Uint32Array;
  readonly texts: string[] = [];
  constructor(stops: string[]) {
    const size = 1024;
    this.words = new Uint32Array(size);
    for (let i = 0; i < size; ++i) {
      const at = (i / (size - 1)) * (stops.length - 1);
      const k = Math.min(stops.length - 2, Math.floor(at));
      const text = mix(stops[k], stops[k + 1], at - k);
      this.texts.push(text);
      this.words[i] = word(text);
    }
  }
  place(t: number): number {
    return Math.max(0, Math.min(1023, Math.round(t * 1023)));
  }
}

// Colours are written as #rrggbb.
function rgb(text: string): [number, number, number] {
  const value = parseInt(text.slice(1), 16);
  return [value >> 16, (value >> 8) & 255, value & 255];
}
// A colour as the bytes of ImageData.
export function word(text: string): number {
  const [r, g, b] = rgb(text);
  return ((255 << 24) | (b << 16) | (g << 8) | r) >>> 0;
}
export function mix(a: string, b: string, t: number): string {
  const to = rgb(b);
  return `#${rgb(a).map((from, i) => Math.round(from + (to[i] - from) * t).toString(16).padStart(2, "0")).join("")}`;
}
export function faded(colour: string, alpha: number): string {
  return `rgba(${rgb(colour)},${alpha})`;
}
function channel(value: number): number {
  const share = value / 255;
  return share <= 0.04045 ? share / 12.92 : ((share + 0.055) / 1.055) ** 2.4;
}
function luminance(colour: string): number {
  const [r, g, b] = rgb(colour);
  return 0.2126 * channel(r) + 0.7152 * channel(g) + 0.0722 * channel(b);
}
// Black or white, what is easier to read on the colour.
export function text_on(colour: string): string {
  return luminance(colour) > 0.179 ? "#000000" : "#ffffff";
}
export function contrast(a: string, b: string): number {
  const [x, y] = [luminance(a), luminance(b)];
  return (Math.max(x, y) + 0.05) / (Math.min(x, y) + 0.05);
}
