// Declarations of what Debian's packages have none for: the parts of d3 that we use, and one part of the browser.
declare class DecompressionStream {
  constructor(format: string);
  readonly readable: ReadableStream<Uint8Array>;
  readonly writable: WritableStream<Uint8Array>;
}
declare module "d3-scale/src/linear" {
  export interface Scale {
    (value: number): number;
    invert(position: number): number;
    domain(): number[];
    domain(values: number[]): this;
    range(): number[];
    range(values: number[]): this;
    clamp(on: boolean): this;
    nice(count?: number): this;
    ticks(count?: number): number[];
    tickFormat(count?: number, specifier?: string): (value: number) => string;
    copy(): this;
  }
  export default function scaleLinear(): Scale;
}
declare module "d3-scale/src/log" {
  import { Scale } from "d3-scale/src/linear";
  export default function scaleLog(): Scale;
}
declare module "d3-array" {
  export function bisectLeft(values: ArrayLike<number>, value: number): number;
}
declare module "d3-color" {
  export function rgb(text: string): { r: number; g: number; b: number };
}
declare module "d3-interpolate/src/rgb" {
  export default function interpolateRgb(a: string, b: string): (t: number) => string;
}
declare module "d3-format" {
  export function format(specifier: string): (value: number) => string;
}
