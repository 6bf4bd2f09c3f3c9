// Scales, colours and numbers as text.

// A value in four digits, with a true minus sign.
export function number(value: number | null | undefined, digits = 4): string {
  if (value === null || value === undefined || !Number.isFinite(value)) return "–";
  const size = Math.abs(value);
  const text = value === 0 || (size >= 1e-3 && size < 1e5) ? String(Number(value.toPrecision(digits))) : value.toExponential(Math.max(0, digits - 2)).replace(/\.?0+e/, "e");
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

export interface Scale {
  (value: number): number;
  domain(): [number, number];
  ticks(many: number): number[];
}
// A scale of an axis. Equal ends are moved apart so that a constant curve lies in the middle.
export function axis(low: number, high: number, range: [number, number], log = false): Scale {
  if (!(low <= high)) [low, high] = [0, 1];
  if (low === high) [low, high] = log ? [low / 2, high * 2] : [low - (Math.abs(low) || 1) * 0.1, high + (Math.abs(high) || 1) * 0.1];
  const on_log = log && low > 0, place = on_log ? Math.log : Number;
  const start = place(low), per = (range[1] - range[0]) / (place(high) - start);
  const scale = (value: number) => range[0] + (place(value) - start) * per;
  return Object.assign(scale, { domain: (): [number, number] => [low, high], ticks: (many: number) => (on_log ? log_ticks : ticks)(low, high, many) });
}

// Multiples of 1, 2 or 5 times a power of ten, about so many.
export function ticks(low: number, high: number, many: number): number[] {
  const raw = (high - low) / many, power = 10 ** Math.floor(Math.log10(raw)), over = raw / power;
  const step = power * (over >= Math.sqrt(50) ? 10 : over >= Math.sqrt(10) ? 5 : over >= Math.SQRT2 ? 2 : 1);
  const list: number[] = [];
  for (let i = Math.ceil(low / step - 1e-9); i <= high / step + 1e-9; ++i) list.push(Number((i * step).toPrecision(12)));
  return list;
}
// 1 to 9 times powers of ten; powers alone where these are many, and round numbers where they are few.
export function log_ticks(low: number, high: number, many: number): number[] {
  const [first, last] = [Math.log10(low), Math.log10(high)];
  if (last - first >= many) return ticks(first, last, many).map((power) => Number(`1e${power}`));
  const list: number[] = [];
  for (let power = Math.floor(first); power <= last; ++power)
    for (let i = 1; i < 10; ++i) list.push(Number(`${i}e${power}`));
  const inside = list.filter((tick) => tick >= low && tick <= high);
  return inside.length * 2 < many ? ticks(low, high, many) : inside;
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
  let low = 0, high = values.length - 1;
  while (high - low > 1) {
    const middle = (low + high) >> 1;
    if (values[middle] <= x) low = middle;
    else high = middle;
  }
  return x - values[low] < values[high] - x ? low : high;
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

// Red, green and blue of "#rrggbb" or "rgb(1, 2, 3)".
function rgb(text: string): number[] {
  return text[0] === "#" ? [1, 3, 5].map((i) => parseInt(text.slice(i, i + 2), 16)) : text.match(/\d+/g)!.map(Number);
}
// A colour as the bytes of ImageData.
export function word(text: string): number {
  const [r, g, b] = rgb(text);
  return ((255 << 24) | (b << 16) | (g << 8) | r) >>> 0;
}
export function mix(a: string, b: string, t: number): string {
  const to = rgb(b);
  return `rgb(${rgb(a).map((from, i) => Math.round(from + (to[i] - from) * t)).join(", ")})`;
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
