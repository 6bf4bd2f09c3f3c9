// A canvas that stays crisp: sized in device pixels, drawn again when its size, the theme or its data change, and larger for print.
// Two layers: the base holds what is costly (all curves), the top what follows the pointer.
import { element, problem } from "../dom";

export type Context = CanvasRenderingContext2D;
// A painter may be a generator: it yields where it may be interrupted.
type Painter = (c: Context, width: number, height: number) => Generator<void> | void;

interface Options { label: string; height: (width: number) => number; width?: (available: number) => number; base?: Painter; top: Painter; role?: string }

const slice_ms = 9;     // work of a frame on one base layer
const print_ratio = 3;  // about 300 dpi
const print_width = 700;  // of a page of A4 or Letter, in pixels of CSS: labels keep their size. A card has less
const surfaces = new Set<Surface>();
let frame = 0;

export class Surface {
  readonly box: HTMLElement;
  readonly canvas: HTMLCanvasElement;      // the top layer: takes pointer and keyboard
  width = 0;
  height = 0;
  private under: HTMLCanvasElement | null = null;
  private dirty_base = true;
  private dirty_top = true;
  private available = 0;
  private seen = false;
  private ratio = 0;
  private work: Generator<void> | null = null;

  constructor(private parent: HTMLElement, private options: Options) {
    this.box = element("div", { class: "surface" });
    this.canvas = element("canvas", { role: options.role ?? "img", "aria-label": options.label });
    if (options.base) {
      this.under = element("canvas", { "aria-hidden": "true" });
      this.box.append(this.under);
    }
    this.box.append(this.canvas);
    parent.append(this.box);
    surfaces.add(this);
    sizes.observe(parent);
    views.observe(this.box);
    owners.set(parent, [...(owners.get(parent) ?? []), this]);
    boxes.set(this.box, this);
  }
  remove(): void {
    surfaces.delete(this);
    const left = (owners.get(this.parent) ?? []).filter((one) => one !== this);
    owners.set(this.parent, left);
    if (!left.length) sizes.unobserve(this.parent);
    views.unobserve(this.box);
    this.box.remove();
  }
  label(text: string): void {
    if (this.canvas.getAttribute("aria-label") !== text) this.canvas.setAttribute("aria-label", text);
  }
  draw(): void {
    this.dirty_base = this.dirty_top = true;
    schedule();
  }
  draw_top(): void {
    this.dirty_top = true;
    schedule();
  }
  resized(available: number): void {
    if (available <= 0) return;
    this.available = available;
    this.draw();
  }
  show(seen: boolean): void {
    this.seen = seen;
    if (seen && (this.dirty_base || this.dirty_top)) schedule();
  }

  private print_room(): number {
    return this.parent.closest(".matrix") ? this.available : this.parent.closest(".card") ? print_width - 40 : print_width;
  }

  // Gives the canvases their size. Returns whether it changed: they are blank then.
  private fit(printing: boolean): boolean {
    const ratio = printing ? print_ratio : window.devicePixelRatio || 1, available = printing ? this.print_room() : this.available;
    const width = Math.floor(this.options.width ? this.options.width(available) : available);
    const height = Math.round(this.options.height(width));
    if (width === this.width && height === this.height && ratio === this.ratio) return false;
    this.dirty_base = this.dirty_top = true;
    [this.width, this.height, this.ratio] = [width, height, ratio];
    for (const canvas of [this.under, this.canvas]) if (canvas) size(canvas, width, height, ratio);
    return true;
  }

  // Draws what is dirty. Returns whether work is left. One picture that fails leaves the others.
  paint(printing: boolean): boolean {
    try {
      return this.painted(printing);
    } catch (error) {
      this.work = null;
      problem("picture", `A picture could not be drawn: ${this.canvas.getAttribute("aria-label")} (${error instanceof Error ? error.message : error})`);
      return false;
    }
  }
  private painted(printing: boolean): boolean {
    if (!(this.seen || printing) || this.available <= 0 || !(this.dirty_base || this.dirty_top || this.work)) return false;
    const blank = this.fit(printing), { width, height, ratio } = this;
    if (this.dirty_base) {
      this.dirty_base = false;
      if (this.under && this.options.base) this.work = this.options.base(clear(this.under, ratio, blank), width, height) ?? null;
    }
    if (this.dirty_top) {
      this.dirty_top = false;
      const left = this.options.top(clear(this.canvas, ratio, blank), width, height);
      if (left) finish(left);
    }
    if (this.work) {
      const end = performance.now() + slice_ms;
      while (this.work) {
        if (this.work.next().done) this.work = null;
        else if (!printing && performance.now() > end) return true;
      }
    }
    return false;
  }
  redraw_for(printing: boolean): void {
    this.dirty_base = this.dirty_top = true;
    if (this.available <= 0) return;
    this.ratio = 0;
    if (printing) this.paint(true);
    else this.fit(false);      // what is out of sight is drawn later, but has its size now
  }
}

function finish(work: Generator<void>): void {
  while (!work.next().done);
}
function size(canvas: HTMLCanvasElement, width: number, height: number, ratio: number): void {
  canvas.width = Math.round(width * ratio);
  canvas.height = Math.round(height * ratio);
  canvas.style.width = `${width}px`;
  canvas.style.height = `${height}px`;
}
// A canvas that was just sized is blank. Clearing it as well would erase the base below it: Chromium prints canvases as their commands.
function clear(canvas: HTMLCanvasElement, ratio: number, blank: boolean): Context {
  const c = canvas.getContext("2d")!;
  c.setTransform(1, 0, 0, 1, 0, 0);
  if (!blank) c.clearRect(0, 0, canvas.width, canvas.height);
  c.setTransform(ratio, 0, 0, ratio, 0, 0);
  return c;
}

function schedule(): void {
  if (!frame) frame = requestAnimationFrame(paint_all);
}
function paint_all(): void {
  frame = 0;
  let left = false;
  for (const surface of surfaces) {
    left = surface.paint(false) || left;
  }
  if (left) schedule();
}

const owners = new WeakMap<Element, Surface[]>();
const boxes = new WeakMap<Element, Surface>();
const sizes = new ResizeObserver((entries) => {
  for (const entry of entries) for (const surface of owners.get(entry.target) ?? []) surface.resized(entry.contentRect.width);
});
const views = new IntersectionObserver((entries) => {
  for (const entry of entries) boxes.get(entry.target)?.show(entry.isIntersecting);
}, { rootMargin: "150px" });

// Everything again: for print at a higher resolution, at once.
export function redraw_all(printing: boolean): void {
  for (const surface of surfaces) surface.redraw_for(printing);
  if (!printing) schedule();
}
