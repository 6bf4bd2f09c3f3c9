// Which heads? The map, the scatter of two metrics and the table.
import { App } from "../app";
import { Field, place_of, third, two_metrics } from "../data";
import { element, figure, fill, select, sideways, view } from "../dom";
import { Box, text, x_axis, y_axis } from "../draw/axes";
import { bar_levels, cells, colour_bar, Grid, grid_height, grid_of, grid_width, hit, labels, level_height, outline } from "../draw/map";
import { dots, Dot, nearest_dot, ring } from "../draw/scatter";
import { Surface } from "../draw/surface";
import { Head, head_name, no_role } from "../head";
import { axis, extent, number, Scale } from "../scale";
import { Level, Run } from "../source";
import { marked, State } from "../state";
import { Colours, head_colour } from "../theme";
import { card_links } from "./card";
import { head_words, metric_choices, mode_name, typing } from "./controls";
import { depth_items, key_of, mark, role_items, role_look } from "./keys";
import { name_tables, table } from "./table";

// Cells can be hit by a finger where the screen is small.
export function least_cell(): number {
  return window.innerWidth < 600 ? 24 : 13;
}

// Place of each head's role at the last moment of the brush; null where there are no roles.
function roles_shown(app: App, state: State, run: Run): ((layer: number, head: number) => number) | null {
  const roles = run.roles;
  if (!roles) return null;
  const bytes = state.brush && roles.of_head ? app.data.block(roles.of_head.block) : undefined;
  if (state.brush && bytes) {
    let moment = roles.step.length - 1;
    while (moment > 0 && roles.step[moment] > state.brush[1]) --moment;
    const start = moment * run.layers * run.heads.q;
    return (layer, head) => bytes[start + layer * run.heads.q + head];
  }
  const last = new Map(roles.scores.map((score) => [score.layer * run.heads.q + score.head, score.role ?? no_role]));
  return (layer, head) => last.get(layer * run.heads.q + head) ?? no_role;
}

// Keys and pointer of a map: arrows walk, Enter pins, Esc clears, hover previews, click pins. Returns what takes a key.
export function map_input(app: App, surface: Surface, grid: () => Grid, run: () => Run): (event: KeyboardEvent) => void {
  const { store } = app;
  const canvas = surface.canvas;
  canvas.tabIndex = 0;
  const under = (event: PointerEvent | MouseEvent) => hit(grid(), event.offsetX, event.offsetY);
  canvas.addEventListener("pointermove", (event) => store.set({ hover: under(event), step: null }));
  canvas.addEventListener("pointerleave", () => {
    if (document.activeElement !== canvas) store.set({ hover: null });
  });
  canvas.addEventListener("click", (event) => {
    const head = under(event);
    if (head) store.pin(head);
  });
  canvas.addEventListener("focus", () => {
    if (!store.state.hover && canvas.matches(":focus-visible")) store.set({ hover: { layer: 0, head: 0 } });
  });
  canvas.addEventListener("blur", () => store.set({ hover: null }));
  const key = (event: KeyboardEvent) => {
    const moves: { [key: string]: [number, number] } = { ArrowUp: [-1, 0], ArrowDown: [1, 0], ArrowLeft: [0, -1], ArrowRight: [0, 1] };
    const at = store.state.hover ?? { layer: 0, head: 0 };
    const { layers, heads } = run();
    let to: Head | null = null;
    if (moves[event.key]) {
      to = { layer: Math.max(0, Math.min(layers - 1, at.layer + moves[event.key][0])), head: Math.max(0, Math.min(heads.q - 1, at.head + moves[event.key][1])) };
    } else if (event.key === "Home") to = { layer: at.layer, head: 0 };
    else if (event.key === "End") to = { layer: at.layer, head: heads.q - 1 };
    else if (event.key === "Enter" || event.key === " ") store.pin(at);
    else return;
    event.preventDefault();
    if (to) {
      store.set({ hover: to, step: null });
      app.say(head_words(app, to));
    }
  };
  canvas.addEventListener("keydown", key);
  return key;
}

// Outlines of pinned heads and of the head under the pointer.
export function draw_marks(c: CanvasRenderingContext2D, grid: Grid, state: State, theme: Colours): void {
  for (const pin of state.pinned)
    if (pin.layer < grid.layers && pin.head < grid.heads) outline(c, grid, { ...pin, colour: theme.categories[pin.slot] }, theme, 3);
  const { hover } = state;
  if (hover && hover.layer < grid.layers && hover.head < grid.heads) outline(c, grid, { ...hover, colour: theme.ink }, theme, 2);
}

export function heads(app: App): void {
  map_view(app);
  scatter_view(app);
  table(app);
  name_tables(app);
}

function map_view(app: App): void {
  const place = view("map");
  if (!place) return;
  const { store, data } = app;
  const shown = figure("Map of heads");
  const frame = element("div", { class: "map-frame" });
  const key = element("div", { class: "map-key" });
  shown.body.append(frame, sideways(frame), key);
  const letters = element("input", { type: "checkbox", checked: true });
  const fixed: HTMLInputElement = element("input", { type: "checkbox", change: () => store.set({ fit: fixed.checked ? "run" : "shown" }) });
  if (data.index.roles.length) shown.tools.append(element("label", { class: "check" }, letters, "roles"));
  shown.tools.append(element("label", { class: "check" }, fixed, "one scale for all steps"));
  place.append(shown.box);
  const run = () => data.run();
  let now: Grid = grid_of(run().layers, run().heads.q, 600, least_cell());
  const field = () => data.field(run(), store.state.metric, store.state.mode);
  const why_empty = () => {
    const { source, metric, mode, other } = store.state, own = data.why_empty(run(), source, metric);
    return mode === "run" && data.current() && data.index.runs[other] ? data.why_empty(data.index.runs[other], source, metric) : own;
  };
  const levels = () => (store.state.mode === "value" ? data.levels(run(), store.state.metric) : []);
  const surface = new Surface(frame, {
    label: "", role: "application",
    width: (available) => grid_width((now = grid_of(run().layers, run().heads.q, available, least_cell()))),
    height: () => grid_height(now),
    base: (c) => {
      labels(c, now, app.theme());
      const values = field(), roles = letters.checked ? roles_shown(app, store.state, run()) : null;
      const letter = roles && ((layer: number, head: number) => role_letter(app, roles(layer, head)));
      if (values) cells(c, now, values, app.theme(), letter);
      else text(c, why_empty(), now.left, now.top + 14, app.theme().soft);
    },
    top: (c) => draw_marks(c, now, store.state, app.theme()),
  });
  const bar = new Surface(key, {
    label: "Key of the colours", height: () => 40 + level_height * levels().length,
    top: (c, width) => {
      const values = field(), hover = store.state.hover;
      const wide = Math.min(320, width - 40);
      if (!values) return;
      bar_levels(c, values, app.theme(), 34, 12, wide, 12, levels());
      colour_bar(c, values, app.theme(), 34, 12, wide, 12, hover ? values.values[place_of(run(), values.heads, hover.layer, hover.head)] : null);
    },
  });
  letters.addEventListener("change", () => surface.draw());
  const walk = map_input(app, surface, () => now, run);
  // Arrows anywhere in the section walk the map; a table that has the focus scrolls with them.
  place.closest("section")?.addEventListener("keydown", (event) => {
    const target = event.target as HTMLElement;
    if (!event.key.startsWith("Arrow") || event.defaultPrevented || typing(event) || target.matches(".frame")) return;
    surface.canvas.focus();
    walk(event);
  });
  shown.readout.append(card_links(app));
  const describe = () => {
    const { metric, mode, brush } = store.state;
    const values = field();
    shown.note.textContent = `${metric}${mode === "value" ? "" : `, ${mode_name(mode)}`}. A row is a layer, a column a query head${values && values.heads !== run().heads.q
      ? `; a cell is a key head, read by ${run().heads.q / values.heads} query heads` : ""}.${values ? compared(values, levels()) : ""}`;
    const range = values ? extent(values.values) : [NaN, NaN];
    surface.label(`Map of ${metric}, ${run().layers} layers by ${run().heads.q} heads, ${number(range[0])} to ${number(range[1])}${brush
      ? `, steps ${brush[0]} to ${brush[1]}` : ", last moment"}. Arrow keys walk, Enter pins.`);
    fixed.checked = store.state.fit === "run";
    surface.draw();
    bar.draw();
    place.dataset.field = values ? `${metric}|${mode}|${brush ?? ""}` : "";
  };
  store.on(["run", "source", "metric", "mode", "brush", "other", "theme", "data", "fit"], describe);
  store.on(["hover", "pinned"], () => {
    surface.draw_top();
    bar.draw_top();
  });
  describe();
  add_role_key(app, shown.box);
}

// " To compare: uniform attention 0.0201 (0 of 16 heads above), static sink ≥ 0.3 (0 above)."
function compared(field: Field, levels: Level[]): string {
  const known = Array.from(field.values).filter(Number.isFinite);
  const parts = levels.map(({ value, text: words }, i) => `${words} (${known.filter((one) => one > value).length}${i ? "" : ` of ${known.length} heads`} above)`);
  return parts.length ? ` To compare: ${parts.join(", ")}.` : "";
}

function role_letter(app: App, role: number): string {
  return app.data.index.roles[role]?.letter ?? "";
}

function add_role_key(app: App, place: HTMLElement): void {
  if (!app.data.index.roles.length || !app.data.run().roles) return;
  const list = element("ul", { class: "key" });
  for (const role of app.data.index.roles) list.append(element("li", {}, element("b", {}, role.letter), ` ${role.text}`));
  place.append(list);
}

interface Scattered { x: Scale; y: Scale; list: Dot[]; heads: Head[]; box: Box }

function scatter_view(app: App): void {
  const place = view("scatter");
  if (!place) return;
  const { store, data } = app;
  const shown = figure("Two metrics");
  const choices = (not: string) => metric_choices(app, store.state).map((choice) => ({ ...choice, disabled: choice.value === not }));
  const x = select("x", [], "", (value) => store.set({ x: value }));
  const y = select("y", [], "", (value) => store.set({ y: value }));
  const colour = select("colour", [{ value: "depth", text: "depth" }, { value: "role", text: "role" }], "depth", (value) => store.set({ colour: value as "depth" | "role" }));
  shown.tools.append(x.box, y.box);
  if (data.index.roles.length) shown.tools.append(colour.box);
  place.append(shown.box);
  shown.box.append(key_of(app, () => (store.state.colour === "role" ? role_items(app, (role) => mark(app, role_look(app, role), false, true)) : depth_items(app, "dot"))));
  let now: Scattered | null = null;
  const surface = new Surface(shown.body, {
    label: "", height: (width) => Math.max(260, Math.min(460, width * 0.78)),
    base: (c, width, height) => {
      now = scattered(app, width, height);
      if (!now) return;
      const theme = app.theme();
      y_axis(c, theme, now.box, now.y, 40);
      x_axis(c, theme, now.box, now.x, store.state.x, number);
      text(c, store.state.y, 4, 10, theme.soft, { size: 11 });
      dots(c, now.list, now.list.length > 300 ? 2.6 : 4.2, store.state.pinned.length ? 0.4 : 0.75);
    },
    top: (c) => {
      if (now) draw_pins(c, app, now);
    },
  });
  const pick = (event: MouseEvent) => {
    const i = now ? nearest_dot(now.list, event.offsetX, event.offsetY) : -1;
    return now && i >= 0 ? now.heads[i] : null;
  };
  surface.canvas.addEventListener("pointermove", (event) => store.set({ hover: pick(event), step: null }));
  surface.canvas.addEventListener("pointerleave", () => store.set({ hover: null }));
  surface.canvas.addEventListener("click", (event) => {
    const head = pick(event);
    if (head) store.pin(head);
  });
  const choose = () => {
    const [first, second] = two_metrics(metric_choices(app, store.state).map((choice) => choice.value), store.state.x, store.state.y);
    store.set({ x: first, y: second });      // another run may have other metrics
    fill(x.input, choices(second), first);
    fill(y.input, choices(first), second);
    shown.note.textContent = second ? "Each dot is a query head, at the steps chosen above. Extremes are worth a look." : "Only one metric was measured here.";
  };
  const update = () => {
    surface.label(`Scatter of ${store.state.y} against ${store.state.x}, one dot for each head. The table of heads has the numbers.`);
    surface.draw();
  };
  store.on(["run", "source", "x", "y"], choose);
  store.on(["run", "source", "brush", "theme", "data", "x", "y", "colour", "pinned"], update);
  store.on(["hover"], () => surface.draw_top());
  choose();
  update();
}

function scattered(app: App, width: number, height: number): Scattered | null {
  const { data, store } = app;
  const state = store.state, run = data.run(state), theme = app.theme();
  const a = data.field(run, state.x, "value", state), b = data.field(run, state.y, "value", state);
  if (!a || !b) return null;
  const box = { left: 48, top: 24, right: width - 14, bottom: height - 38 };
  const scale = (field: Field, range: [number, number]) => {
    const [low, high] = extent(field.values);
    return axis(low, high, range, field.log);
  };
  const x = scale(a, [box.left + 8, box.right - 8]), y = scale(b, [box.bottom - 8, box.top + 8]);
  const roles = state.colour === "role" ? roles_shown(app, state, run) : null;
  const list: Dot[] = [], heads: Head[] = [];
  for (let layer = 0; layer < run.layers; ++layer) {
    for (let head = 0; head < run.heads.q; ++head) {
      const u = a.values[place_of(run, a.heads, layer, head)], v = b.values[place_of(run, b.heads, layer, head)];
      if (!Number.isFinite(u) || !Number.isFinite(v)) continue;
      const role = roles?.(layer, head);
      list.push({ x: x(u), y: y(v), ...(role === undefined ? { colour: theme.depth[third(layer, run.layers)] } : role_look(app, role)) });
      heads.push({ layer, head });
    }
  }
  return { x, y, list, heads, box };
}

function draw_pins(c: CanvasRenderingContext2D, app: App, now: Scattered): void {
  const { hover } = app.store.state, theme = app.theme();
  for (const mark of marked(app.store.state)) {
    const i = now.heads.findIndex((head) => head.layer === mark.layer && head.head === mark.head);
    if (i < 0) continue;
    const { x, y } = now.list[i];
    ring(c, theme, x, y, head_colour(theme, mark), hover && mark.layer === hover.layer && mark.head === hover.head ? 8.5 : 7.5);
    const left = x > now.box.right - 60;
    text(c, head_name(mark), x + (left ? -11 : 11), y, theme.ink, { size: 12, weight: 600, align: left ? "right" : "left", halo: theme.paper });
  }
}
