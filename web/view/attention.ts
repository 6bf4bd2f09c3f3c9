// Attention of a head on a text: the picture and the text, with the token under the pointer.
import { App } from "../app";
import { button, element, select } from "../dom";
import { text } from "../draw/axes";
import { picture, visible, weights } from "../draw/tokens";
import { Surface } from "../draw/surface";
import { mix, number, text_on } from "../scale";
import { Run } from "../source";
import { head_name, Pin } from "../state";

type Direction = "to" | "from";
interface Shown { text: number; token: number | null; direction: Direction; without_first: boolean }

export function attention(app: App, run: Run, head: Pin): { box: HTMLElement; surfaces: Surface[]; draw: () => void } | null {
  const given = run.attention;
  const at = given?.heads.findIndex(([layer, place]) => layer === head.layer && place === head.head) ?? -1;
  if (!given || at < 0 || !given.texts.length) return null;
  const state: Shown = { text: 0, token: null, direction: "to", without_first: false };
  const panel = new Panel(app, head, () => given.texts[state.text].pieces, () => app.data.block(given.blocks[state.text][at]), state);
  const tools = element("div", { class: "tools" });
  if (given.texts.length > 1) {
    const names = given.texts.map((one, i) => ({ value: String(i), text: `text ${i + 1}: ${one.pieces.slice(0, 6).map(visible).join("").slice(0, 24)}…` }));
    tools.append(select("Text", names, "0", (value) => {
      state.text = Number(value);
      state.token = null;
      panel.fill();
    }).box);
  }
  tools.append(...panel.buttons());
  const box = element("div", { class: "attention" }, element("h4", {}, "Attention on a text"), tools, panel.box);
  const layer = thumbnails(app, run, head, state);
  if (layer) box.append(layer.canvas_box);
  panel.fill();
  return { box, surfaces: layer ? [panel.surface, layer.surface] : [panel.surface], draw: () => panel.shade() };
}

// The heads of the layer that the page holds, small; a click pins one.
function thumbnails(app: App, run: Run, head: Pin, state: Shown): { canvas_box: HTMLElement; surface: Surface } | null {
  const given = run.attention!;
  const own = given.heads.map(([layer, place], at) => ({ layer, head: place, at })).filter((one) => one.layer === head.layer);
  if (own.length < 2) return null;
  const side = 64, gap = 8, row = side + 20;
  const columns = (width: number) => Math.max(1, Math.floor((width + gap) / (side + gap)));
  const canvas_box = element("div", { class: "small" });
  const surface = new Surface(canvas_box, {
    label: `Attention of the other heads of layer ${head.layer}`, height: (width) => Math.ceil(own.length / columns(width)) * row + 4,
    top: (c, width) => own.forEach((one, i) => {
      const bytes = app.data.block(given.blocks[state.text][one.at]), theme = app.theme(), pieces = given.texts[state.text].pieces.length;
      const left = (i % columns(width)) * (side + gap), top = Math.floor(i / columns(width)) * row;
      text(c, head_name(one), left, top + 9, one.head === head.head ? theme.ink : theme.soft, { size: 11, weight: one.head === head.head ? 700 : 400 });
      if (bytes) picture(c, theme, weights(bytes, pieces, state.without_first), pieces, left, top + 18, side);
    }),
  });
  surface.canvas.classList.add("clickable");
  surface.canvas.addEventListener("click", (event) => {
    const one = own[Math.floor(event.offsetY / row) * columns(surface.width) + Math.floor(event.offsetX / (side + gap))];
    if (one && one.head !== head.head) app.store.pin(one);
  });
  return { canvas_box, surface };
}

class Panel {
  readonly box = element("div", { class: "attention-body" });
  readonly surface: Surface;
  private tokens = element("div", { class: "tokens", tabindex: 0, role: "group" });
  private readout = element("p", { class: "readout", role: "status" });
  private cache: { bytes: Uint8Array; without: boolean; rows: Float64Array } | null = null;
  private hovered: number | null = null;

  constructor(private app: App, private head: Pin, private pieces: () => string[], private bytes: () => Uint8Array | undefined, private state: Shown) {
    const matrix = element("div", { class: "matrix" });
    this.tokens.setAttribute("aria-label", `Text of the attention of ${head_name(head)}. Arrow keys walk the tokens.`);
    this.surface = new Surface(matrix, {
      label: `Attention of ${head_name(head)}: queries down, keys to the right`, height: (width) => width,
      base: (c, width) => {
        const rows = this.rows();
        if (rows) picture(c, app.theme(), rows, this.pieces().length, 0, 0, width);
      },
      top: (c, width) => this.cursor(c, width),
    });
    this.box.append(matrix, element("div", { class: "attention-text" }, this.tokens, this.readout));
    this.input();
  }

  buttons(): HTMLElement[] {
    const direction = button("", () => {
      this.state.direction = this.state.direction === "to" ? "from" : "to";
      name();
      this.shade();
    });
    const name = () => (direction.textContent = this.state.direction === "to" ? "Where it looks" : "Who looks at it");
    name();
    const without = element("input", { type: "checkbox", change: () => {
      this.state.without_first = without.checked;
      this.surface.draw();
      this.shade();
    } });
    return [direction, element("label", { class: "check" }, without, "without the first token")];
  }

  private rows(): Float64Array | null {
    const bytes = this.bytes();
    if (!bytes) return null;
    if (this.cache?.bytes !== bytes || this.cache.without !== this.state.without_first)
      this.cache = { bytes, without: this.state.without_first, rows: weights(bytes, this.pieces().length, this.state.without_first) };
    return this.cache.rows;
  }

  fill(): void {
    const parts: Node[] = [];
    this.pieces().forEach((piece, i) => {
      parts.push(element("span", { class: "token", "data-token": i }, visible(piece)));
      if (piece.includes("\n")) parts.push(element("br"));
    });
    this.tokens.replaceChildren(...parts);
    this.surface.draw();
    this.shade();
  }

  // Shades every token: by what the chosen token gives to or gets from it; without one, by its share of all attention.
  shade(): void {
    const rows = this.rows();
    if (!rows) return;
    const n = this.pieces().length, chosen = this.hovered ?? this.state.token;
    const values = shares(rows, n, chosen, this.state.direction);
    const most = Math.max(...values, 1e-9), theme = this.app.theme();
    for (const span of Array.from(this.tokens.querySelectorAll<HTMLElement>(".token"))) {
      const i = Number(span.dataset.token), share = Math.sqrt(values[i] / most);
      const reached = chosen === null || (this.state.direction === "to" ? i <= chosen : i >= chosen);
      const colour = mix(theme.paper, theme.categories[this.head.slot], 0.06 + 0.94 * share);
      span.style.backgroundColor = reached ? colour : "transparent";
      span.style.color = reached ? text_on(colour) : "var(--soft)";
      span.classList.toggle("chosen", i === chosen);
    }
    this.readout.textContent = this.words(values, chosen);
    this.surface.draw_top();
  }

  private words(values: number[], chosen: number | null): string {
    const pieces = this.pieces();
    const best = values.map((value, i) => ({ value, i })).sort((a, b) => b.value - a.value).slice(0, 4).filter((one) => one.value > 0.005)
      .map((one) => `${one.i} “${visible(pieces[one.i])}” ${number(100 * one.value, 2)} %`).join(", ");
    if (chosen === null) return `Shade: share of all attention that a token gets. Most: ${best}. Point at a token, or tap it.`;
    return `${chosen} “${visible(pieces[chosen])}” ${this.state.direction === "to" ? "looks at" : "is looked at by"}: ${best || "none"}`;
  }

  private cursor(c: CanvasRenderingContext2D, width: number): void {
    const n = this.pieces().length, chosen = this.hovered ?? this.state.token, cell = width / n;
    const theme = this.app.theme();
    c.strokeStyle = theme.muted;
    c.strokeRect(0.5, 0.5, width - 1, width - 1);
    if (chosen === null) return;
    c.strokeStyle = theme.depth[2];
    c.lineWidth = 1.5;
    if (this.state.direction === "to") c.strokeRect(0, chosen * cell, (chosen + 1) * cell, cell);
    else c.strokeRect(chosen * cell, chosen * cell, cell, width - chosen * cell);
  }

  private input(): void {
    const token_of = (event: Event) => {
      const value = (event.target as HTMLElement).closest<HTMLElement>(".token")?.dataset.token;
      return value === undefined ? null : Number(value);
    };
    const hover = (token: number | null) => {
      if (token === this.hovered) return;
      this.hovered = token;
      this.shade();
    };
    this.tokens.addEventListener("pointerover", (event) => hover(token_of(event)));
    this.tokens.addEventListener("pointerleave", () => hover(null));
    this.tokens.addEventListener("click", (event) => {
      const token = token_of(event);
      this.state.token = token === this.state.token ? null : token;
      this.shade();
    });
    this.tokens.addEventListener("keydown", (event) => {
      const by = event.key === "ArrowRight" ? 1 : event.key === "ArrowLeft" ? -1 : 0;
      if (!by) return;
      this.state.token = Math.max(0, Math.min(this.pieces().length - 1, (this.state.token ?? -1) + by));
      this.shade();
      event.preventDefault();
    });
    const row = (event: PointerEvent) => Math.min(this.pieces().length - 1, Math.floor(((this.state.direction === "to" ? event.offsetY : event.offsetX) / this.surface.width) * this.pieces().length));
    this.surface.canvas.addEventListener("pointermove", (event) => hover(row(event)));
    this.surface.canvas.addEventListener("pointerleave", () => hover(null));
  }
}

// What each token gets from the chosen one, or gives to it; when none is chosen, its share of all attention.
export function shares(rows: Float64Array, n: number, chosen: number | null, direction: Direction): number[] {
  return Array.from({ length: n }, (_, i) => {
    if (chosen !== null) return direction === "to" ? rows[chosen * n + i] : rows[i * n + chosen];
    let sum = 0;
    for (let query = i; query < n; ++query) sum += rows[query * n + i];
    return sum / n;
  });
}
