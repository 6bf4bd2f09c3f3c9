// Attention of a head on a text: the picture and the text, with the token under the pointer.
import { App } from "../app";
import { button, element, select } from "../dom";
import { text } from "../draw/axes";
import { Direction, picture, shares, square_height, square_of, token_axes, uniform, visible, weight_key, weights } from "../draw/tokens";
import { Surface } from "../draw/surface";
import { head_name } from "../head";
import { mix, number, text_on } from "../scale";
import { Run } from "../source";
import { Pin } from "../state";

// The token that was chosen, and one of those that it looks at (or that look at it).
interface Choice { token: number | null; partner: number | null }
interface Shown extends Choice { text: number; direction: Direction; without_first: boolean }

export function attention(app: App, run: Run, head: Pin): { box: HTMLElement; surfaces: Surface[]; draw: () => void } | null {
  const given = run.attention;
  const at = given?.heads.findIndex(([layer, place]) => layer === head.layer && place === head.head) ?? -1;
  if (!given || at < 0 || !given.texts.length) return null;
  const state: Shown = { text: 0, token: null, partner: null, direction: "to", without_first: false };
  const panel = new Panel(app, head, () => given.texts[state.text].pieces, () => app.data.block(given.blocks[state.text][at]), state);
  const tools = element("div", { class: "tools" });
  if (given.texts.length > 1) {
    const names = given.texts.map((one, i) => ({ value: String(i), text: `text ${i + 1}: ${one.pieces.slice(0, 6).map(visible).join("").slice(0, 24)}…` }));
    tools.append(select("Text", names, "0", (value) => {
      state.text = Number(value);
      state.token = state.partner = null;
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
  private hovered: Choice | null = null;

  constructor(private app: App, private head: Pin, private pieces: () => string[], private bytes: () => Uint8Array | undefined, private state: Shown) {
    const matrix = element("div", { class: "matrix" });
    this.tokens.setAttribute("aria-label", `Text of the attention of ${head_name(head)}. Left and right choose a token, up and down one that it looks at.`);
    this.surface = new Surface(matrix, {
      label: `Attention of ${head_name(head)}: queries down, keys to the right. Arrow keys walk.`, height: square_height, role: "application",
      base: (c, width) => {
        const rows = this.rows(), { left, top, side } = square_of(width);
        if (rows) picture(c, app.theme(), rows, this.pieces().length, left, top, side);
      },
      top: (c, width) => this.cursor(c, width),
    });
    this.box.append(matrix, this.tokens, this.readout);
    this.input();
  }

  buttons(): HTMLElement[] {
    const direction = button("", () => {
      this.state.direction = this.state.direction === "to" ? "from" : "to";
      this.state.partner = null;
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
  private chosen(): Choice {
    return this.hovered ?? this.state;
  }
  // Whether a token can be read by the other, or read it.
  private reached(token: number, other: number): boolean {
    return this.state.direction === "to" ? other <= token : other >= token;
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
    const n = this.pieces().length, { token, partner } = this.chosen();
    const values = shares(n, token, this.state.direction, (query, key) => rows[query * n + key]);
    const most = Math.max(...values, 1e-9), theme = this.app.theme();
    for (const span of Array.from(this.tokens.querySelectorAll<HTMLElement>(".token"))) {
      const i = Number(span.dataset.token), share = Math.sqrt(values[i] / most);
      const reached = token === null || this.reached(token, i);
      const colour = mix(theme.paper, theme.categories[this.head.slot], 0.06 + 0.94 * share);
      span.style.backgroundColor = reached ? colour : "transparent";
      span.style.color = reached ? text_on(colour) : "var(--soft)";
      span.classList.toggle("chosen", i === token);
      span.classList.toggle("key-token", i === partner);
    }
    this.readout.textContent = this.words(values);
    this.surface.draw_top();
  }

  // Shares, each beside what uniform attention would give.
  private words(values: number[]): string {
    const pieces = this.pieces(), { token, partner } = this.chosen(), { direction, without_first } = this.state;
    const even = shares(pieces.length, token, direction, (query, key) => (without_first && key === 0 ? 0 : uniform(query, without_first)));
    const name = (i: number) => `${i} “${visible(pieces[i])}”`;
    const share = (i: number) => `${number(values[i], 2)}${even[i] > 0 ? `, ${number(values[i] / even[i], 2)} × uniform` : ""}`;
    const best = values.map((value, i) => ({ value, i })).sort((a, b) => b.value - a.value).slice(0, 4).filter((one) => one.value > 0.005)
      .map(({ i }) => `${name(i)} ${share(i)}`).join("; ");
    if (token === null) return `Shade: share of all attention that a token gets. Most: ${best}. Point at a token, or tap it.`;
    const looks = `${name(token)} ${direction === "to" ? "looks at" : "is looked at by"}`;
    return partner === null ? `${looks}: ${best || "none"}` : `${looks} ${name(partner)}: ${share(partner)}. Most: ${best || "none"}`;
  }

  private cursor(c: CanvasRenderingContext2D, width: number): void {
    const n = this.pieces().length, { token, partner } = this.chosen(), square = square_of(width), cell = square.side / n;
    const theme = this.app.theme(), rows = this.rows(), [query, key] = this.state.direction === "to" ? [token, partner] : [partner, token];
    token_axes(c, theme, n, square, query, key);
    weight_key(c, theme, square, rows && query !== null && key !== null ? rows[query * n + key] : null);
    if (token === null) return;
    const frame = (x: number, y: number, wide: number, high: number, colour: string) => [theme.paper, colour].forEach((stroke, i) => {
      c.strokeStyle = stroke;
      c.lineWidth = i ? 1.5 : 3;
      c.strokeRect(square.left + x * cell, square.top + y * cell, wide * cell, high * cell);
    });
    if (this.state.direction === "to") frame(0, token, token + 1, 1, theme.depth[2]);
    else frame(token, token, 1, n - token, theme.depth[2]);
    if (query !== null && key !== null) frame(key, query, 1, 1, theme.ink);
  }

  private hover(choice: Choice | null): void {
    if (choice?.token === this.hovered?.token && choice?.partner === this.hovered?.partner) return;
    this.hovered = choice;
    this.shade();
  }
  private choose(token: number | null, partner: number | null): void {
    this.hovered = null;
    Object.assign(this.state, { token, partner });
    this.shade();
  }
  // A token of the text: the first that is chosen, then those that it looks at.
  private of_text(event: Event): Choice | null {
    const value = (event.target as HTMLElement).closest<HTMLElement>(".token")?.dataset.token, { token } = this.state;
    if (value === undefined) return null;
    const other = Number(value);
    return token === null || !this.reached(token, other) ? { token: other, partner: null } : { token, partner: token === other ? null : other };
  }
  // A cell of the picture. Beside the triangle, the row or column alone.
  private of_picture(event: MouseEvent): Choice {
    const n = this.pieces().length, { left, top, side } = square_of(this.surface.width);
    const place = (at: number) => Math.max(0, Math.min(n - 1, Math.floor((at / side) * n)));
    const query = place(event.offsetY - top), key = place(event.offsetX - left);
    const [token, other] = this.state.direction === "to" ? [query, key] : [key, query];
    return { token, partner: this.reached(token, other) ? other : null };
  }

  private input(): void {
    const { canvas } = this.surface;
    canvas.tabIndex = 0;
    this.tokens.addEventListener("pointerover", (event) => this.hover(event.pointerType === "mouse" ? this.of_text(event) : null));
    canvas.addEventListener("pointermove", (event) => this.hover(this.of_picture(event)));
    for (const place of [this.tokens, canvas]) place.addEventListener("pointerleave", () => this.hover(null));
    this.tokens.addEventListener("click", (event) => {
      const choice = this.of_text(event), again = choice?.partner === null && choice.token === this.state.token;
      if (choice) this.choose(again ? null : choice.token, choice.partner);
    });
    canvas.addEventListener("click", (event) => {
      const { token, partner } = this.of_picture(event), again = token === this.state.token && partner === this.state.partner;
      this.choose(again ? null : token, again ? null : partner);
    });
    this.tokens.addEventListener("keydown", (event) => this.key(event, true));
    canvas.addEventListener("keydown", (event) => this.key(event, this.state.direction === "from"));
  }
  // Arrows move the token and its partner; `across`: left and right move the token.
  private key(event: KeyboardEvent, across: boolean): void {
    const x = Number(event.key === "ArrowRight") - Number(event.key === "ArrowLeft"), y = Number(event.key === "ArrowDown") - Number(event.key === "ArrowUp");
    const { token, partner } = this.state, last = this.pieces().length - 1;
    const to = (from: number, by: number) => Math.max(0, Math.min(last, from + by));
    if (event.key === "Escape" && token !== null) this.choose(null, null);
    else if (!x && !y) return;
    else if (token === null) this.choose(0, null);
    else if (across ? x : y) {
      const moved = to(token, across ? x : y);
      this.choose(moved, partner !== null && this.reached(moved, partner) ? partner : null);
    } else {
      const moved = to(partner ?? token, partner === null ? 0 : across ? y : x);
      this.choose(token, this.reached(token, moved) ? moved : partner);
    }
    event.preventDefault();
    event.stopPropagation();
  }
}
