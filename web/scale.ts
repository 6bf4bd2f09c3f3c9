// Scales, colours and numbers as text.

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
  return Math.round(value).toLocaleString("en");
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
    domain: (): [number, number] => [low, high], ticks: (many: number) => (logarithmic ? log_ticks(low, high, many) : even_ticks(low, high, many)),
  });
}

// Multiples of 1, 2 or 5 times a power of ten, whichever is nearest (as a ratio) to the distance asked for.
function even_ticks(low: number, high: number, many: number): number[] {
  const asked = (high - low) / many, power = 10 ** Math.floor(Math.log10(asked)), ratio = asked / power;
  const step = power * (ratio >= Math.sqrt(50) ? 10 : ratio >= Math.sqrt(10) ? 5 : ratio >= Math.sqrt(2) ? 2 : 1);
  const first = Math.ceil(low / step - 1e-9), length = Math.min(100, Math.floor(high / step + 1e-9) - first + 1);      // rounding costs no tick at an end
  if (length < 2 && many < 9) return even_ticks(low, high, many + 1);      // one tick says nothing about distances
  return Array.from({ length }, (_, i) => Number(((first + i) * step).toPrecision(12)));
}
// 1, 2 and 5 times the powers of ten; powers alone, or every second or third, where these are too many; even ticks where they are too few.
function log_ticks(low: number, high: number, many: number): number[] {
  const first = Math.floor(Math.log10(low)), last = Math.floor(Math.log10(high));
  const ticks = (digits: number[], every: number) => Array.from({ length: last - first + 1 }, (_, i) => first + i).filter((power) => power % every === 0)
    .flatMap((power) => digits.map((digit) => Number(`${digit}e${power}`))).filter((tick) => tick >= low && tick <= high);
  const fine = ticks([1, 2, 5], 1);
  if (fine.length < 3) return even_ticks(low, high, many);
  return fine.length <= 1.5 * many ? fine : ticks([1], Math.ceil((last - first + 1) / (1.5 * many)));
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
  let low = 0, high = values.length - 1;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (values[middle] < x) low = middle + 1;
    else high = middle;
  }
  return low > 0 && x - values[low - 1] < values[low] - x ? low - 1 : low;
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
