// Declarations of what Debian's packages have none for: the parts of d3 that we use.
declare module "d3-scale/src/linear" {
  export interface D3Scale {
    (value: number): number;
    domain(values: number[]): this;
    range(values: number[]): this;
    ticks(count?: number): number[];
  }
  export default function scaleLinear(): D3Scale;
}
declare module "d3-scale/src/log" {
  import { D3Scale } from "d3-scale/src/linear";
  export default function scaleLog(): D3Scale;
}
declare module "d3-array" {
  export function bisectLeft(values: ArrayLike<number>, value: number): number;
  export function ticks(start: number, stop: number, count: number): number[];
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
