/*! Every page holds parts of d3, by Mike Bostock.
d3-array: Copyright 2010-2021 Mike Bostock. ISC licence:
Permission to use, copy, modify, and/or distribute this software for any purpose with or without fee is hereby granted, provided that the above copyright notice and this permission notice appear in all copies.
THE SOFTWARE IS PROVIDED "AS IS" AND THE AUTHOR DISCLAIMS ALL WARRANTIES WITH REGARD TO THIS SOFTWARE INCLUDING ALL IMPLIED WARRANTIES OF MERCHANTABILITY AND FITNESS. IN NO EVENT SHALL THE AUTHOR BE LIABLE FOR ANY SPECIAL, DIRECT, INDIRECT, OR CONSEQUENTIAL DAMAGES OR ANY DAMAGES WHATSOEVER RESULTING FROM LOSS OF USE, DATA OR PROFITS, WHETHER IN AN ACTION OF CONTRACT, NEGLIGENCE OR OTHER TORTIOUS ACTION, ARISING OUT OF OR IN CONNECTION WITH THE USE OR PERFORMANCE OF THIS SOFTWARE.
d3-scale, d3-color: Copyright 2017 Mike Bostock. d3-interpolate, d3-collection: Copyright 2010-2016 Mike Bostock. d3-format: Copyright 2010-2015 Mike Bostock. All rights reserved. BSD licence:
Redistribution and use in source and binary forms, with or without modification, are permitted provided that the following conditions are met:
1. Redistributions of source code must retain the above copyright notice, this list of conditions and the following disclaimer.
2. Redistributions in binary form must reproduce the above copyright notice, this list of conditions and the following disclaimer in the documentation and/or other materials provided with the distribution.
3. Neither the name of the author nor the names of contributors may be used to endorse or promote products derived from this software without specific prior written permission.
THIS SOFTWARE IS PROVIDED BY THE COPYRIGHT HOLDERS AND CONTRIBUTORS "AS IS" AND ANY EXPRESS OR IMPLIED WARRANTIES, INCLUDING, BUT NOT LIMITED TO, THE IMPLIED WARRANTIES OF MERCHANTABILITY AND FITNESS FOR A PARTICULAR PURPOSE ARE DISCLAIMED.  IN NO EVENT SHALL THE HOLDERS OR CONTRIBUTORS BE LIABLE FOR ANY DIRECT, INDIRECT, INCIDENTAL, SPECIAL, EXEMPLARY, OR CONSEQUENTIAL DAMAGES (INCLUDING, BUT NOT LIMITED TO, PROCUREMENT OF SUBSTITUTE GOODS OR SERVICES; LOSS OF USE, DATA, OR PROFITS; OR BUSINESS INTERRUPTION) HOWEVER CAUSED AND ON ANY THEORY OF LIABILITY, WHETHER IN CONTRACT, STRICT LIABILITY, OR TORT (INCLUDING NEGLIGENCE OR OTHERWISE) ARISING IN ANY WAY OUT OF THE USE OF THIS SOFTWARE, EVEN IF ADVISED OF THE POSSIBILITY OF SUCH DAMAGE.
*/
// Scales, colours and numbers as text.
import { bisectLeft, ticks as even_ticks } from "d3-array";
import { rgb } from "d3-color";
import { format } from "d3-format";
import interpolateRgb from "d3-interpolate/src/rgb";
// The package as a whole would bring scales of dates: 30 kB.
import scaleLinear from "d3-scale/src/linear";
import scaleLog from "d3-scale/src/log";

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
const thousands = format(",d");
export function count(value: number): string {
  return thousands(Math.round(value));
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
  const logarithmic = log && low > 0;
  const scale = (logarithmic ? scaleLog() : scaleLinear()).domain([low, high]).range(range);
  return Object.assign((value: number) => scale(value), {
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
  const all = scaleLog().domain([low, high]).ticks(Infinity), digit = (tick: number) => Number(tick.toExponential()[0]);
  const fine = all.filter((tick) => [1, 2, 5].includes(digit(tick))), powers = all.filter((tick) => digit(tick) === 1);
  if (fine.length < 3) return linear_ticks(low, high, many);
  const every = Math.ceil((Math.floor(Math.log10(high)) - Math.floor(Math.log10(low)) + 1) / (1.5 * many));
  return fine.length <= 1.5 * many ? fine : powers.filter((tick) => Math.round(Math.log10(tick)) % every === 0);
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

// A colour as the bytes of ImageData.
export function word(text: string): number {
  const { r, g, b } = rgb(text);
  return ((255 << 24) | (Math.round(b) << 16) | (Math.round(g) << 8) | Math.round(r)) >>> 0;
}
export function mix(a: string, b: string, t: number): string {
  return interpolateRgb(a, b)(t);
}
export function faded(colour: string, alpha: number): string {
  const { r, g, b } = rgb(colour);
  return `rgba(${r},${g},${b},${alpha})`;
}
function channel(value: number): number {
  const share = value / 255;
  return share <= 0.04045 ? share / 12.92 : ((share + 0.055) / 1.055) ** 2.4;
}
function luminance(colour: string): number {
  const { r, g, b } = rgb(colour);
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
