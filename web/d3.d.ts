// Declarations of what Debian's package has none for: the parts of d3 that we use.
declare module "d3-array" {
  export function bisectLeft(values: ArrayLike<number>, value: number): number;
  export function ticks(start: number, stop: number, count: number): number[];
}
