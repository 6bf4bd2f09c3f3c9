// Compare: runs beside each other on one scale, their difference, head against head; the effects of a study.
import { App } from "../app";
import { corresponds, Field, layer_means, place_of, third, values_of } from "../data";
import { button, element, figure, select, sideways, view } from "../dom";
import { Box, rule, text, x_axis, y_axis } from "../draw/axes";
import { band, curve, positions, time_scale } from "../draw/lines";
import { cells, colour_bar, Grid, grid_height, grid_of, grid_width, labels } from "../draw/map";
import { diagonal, Dot, dots, nearest_dot, ring } from "../draw/scatter";
import { Surface } from "../draw/surface";
import { Head, head_name, key_head, query_head } from "../head";
import { axis, extent, faded, number, signed } from "../scale";
import { Run } from "../source";
import { marked } from "../state";
import { head_colour, look } from "../theme";
import { draw_marks, least_cell, map_input } from "./heads";
import { run_choices } from "./controls";
import { line_key, mark } from "./keys";
import { columns_of, loss_range } from "./loss";
import { left_margin } from "./time";

export function compare(app: App): void {
  const place = view("compare");
  if (!place) return;
  const { index } = app.data;
  if (index.study) study(app, place);
  if (index.runs.length < 2) return;
  losses(app, place);
  if (!index.runs.some((run) => run.sources.length)) return;
  const pair = element("div", {});
  place.append(pair);
  let surfaces: Surface[] = [], ends: (() => void)[] = [];
  const update = () => {
    surfaces.forEach((surface) => surface.remove());
    ends.forEach((end) => end());
    surfaces = [];
    ends = [];
    pair.replaceChildren(...pair_views(app, surfaces, ends));
    name();
  };
  const name = () => {
    const title = pair.querySelector("h3");
    if (title) title.textContent = `Two runs: ${app.store.state.metric}`;
  };
  const draw = () => {
    name();
    surfaces.forEach((surface) => surface.draw());
  };
  app.store.on(["run", "other"], update);
  app.store.on(["metric", "source", "brush", "theme", "data", "mode", "fit"], draw);
  app.store.on(["hover", "pinned"], () => surfaces.forEach((surface) => surface.draw_top()));
  update();
}

function pair_views(app: App, surfaces: Surface[], ends: (() => void)[]): HTMLElement[] {
  const { data, store } = app;
  const a = data.run(), b = data.index.runs[store.state.other] ?? data.index.runs.find((run) => run !== a)!;
  const shown = figure("Two runs");
  shown.box.classList.add("long");      // of several pictures: print may break between them
  const choices = run_choices(app).map((choice) => ({ ...choice, disabled: choice.value === String(store.state.run) }));
  if (data.index.runs.length > 2) shown.tools.append(select("against", choices, String(store.state.other), (value) => store.set({ other: Number(value) })).box);
  shown.note.textContent = why(a, b);
  const grid = element("div", { class: "columns" });
  shown.body.append(grid);
  if (corresponds(a, b)) {
    grid.append(map_of(app, a, b, "a", surfaces), map_of(app, a, b, "b", surfaces), map_of(app, a, b, "difference", surfaces), head_scatter(app, a, b, surfaces));
  } else {
    grid.append(layer_plot(app, a, b, surfaces, ends), distributions(app, a, b, surfaces));
  }
  return [shown.box];
}

function why(a: Run, b: Run): string {
  const names = `${a.label} and ${b.label}`;
  if (corresponds(a, b)) return `${names} have the same weights at the start or are the same model, so a head of one corresponds to the same head of the other. Maps share one scale.`;
  const shape = a.layers !== b.layers || a.heads.q !== b.heads.q || a.heads.k !== b.heads.k;
  return shape ? `${names} have different shapes (${a.layers} × ${a.heads.q} and ${b.layers} × ${b.heads.q} heads). Heads do not correspond: only layers and distributions are compared.`
    : `${names} are not known to have the same weights at the start or to be the same model, so head 3 of one may have nothing to do with head 3 of the other: only layers and distributions are compared.`;
}

// The two values of each head, on one scale. Four pictures ask for them at every move of the pointer: the last are kept.
interface Pair { a: Field; b: Field; difference: Field }
let last: { first: Field; second: Field; pair: Pair } | null = null;
function pair_fields(app: App, a: Run, b: Run): Pair | null {
  const { state } = app.store;
  const first = app.data.field(a, state.metric, "value"), second = app.data.field(b, state.metric, "value");
  if (!first || !second) return null;
  if (last?.first === first && last.second === second) return last.pair;
  const low = Math.min(first.low, second.low), high = Math.max(first.high, second.high);
  const log = first.log && second.log;
  const values = first.values.map((value, i) => value - second.values[i]);
  const most = Math.max(...extent(values).map(Math.abs)) || 1;
  const pair = { a: { ...first, low, high, log }, b: { ...second, low, high, log }, difference: { ...first, values, diverging: true, log: false, low: -most, high: most } };
  last = { first, second, pair };
  return pair;
}

function panel(title: string): HTMLElement {
  return element("div", { class: "panel" }, element("h4", {}, title));
}

function map_of(app: App, a: Run, b: Run, which: "a" | "b" | "difference", surfaces: Surface[]): HTMLElement {
  const title = which === "a" ? a.label : which === "b" ? b.label : `${a.label} minus ${b.label}`;
  const box = panel(title), frame = element("div", { class: "map-frame" }), key = element("div", {});
  box.append(frame, sideways(frame), key);
  let now: Grid = grid_of(a.layers, a.heads.q, 300, least_cell());
  const field = () => pair_fields(app, a, b)?.[which] ?? null;
  const surface = new Surface(frame, {
    label: `Map of ${title}. Arrow keys walk, Enter pins.`, role: "application",
    width: (available) => grid_width((now = grid_of(a.layers, a.heads.q, available, Math.min(least_cell(), 24)))), height: () => grid_height(now),
    base: (c) => {
      labels(c, now, app.theme());
      const values = field();
      if (values) cells(c, now, values, app.theme(), null);
    },
    top: (c) => draw_marks(c, now, app.store.state, app.theme()),
  });
  map_input(app, surface, () => now, () => a);
  const bar = new Surface(key, {
    label: "Key of the colours", height: () => 40,
    top: (c, width) => {
      const values = field(), { hover } = app.store.state;
      if (values) colour_bar(c, values, app.theme(), 34, 12, Math.min(260, width - 40), 10, hover ? values.values[place_of(a, values.heads, hover.layer, hover.head)] : null);
    },
  });
  surfaces.push(surface, bar);
  return box;
}

function head_scatter(app: App, a: Run, b: Run, surfaces: Surface[]): HTMLElement {
  const box = panel("Head by head"), body = element("div", {}), note = element("p", { class: "note" });
  box.append(body, note);
  let list: Dot[] = [], heads: Head[] = [];
  const surface = new Surface(body, {
    label: `Each head: its value in ${b.label} against ${a.label}`, height: (width) => Math.min(380, width * 0.85),
    base: (c, width, height) => {
      const fields = pair_fields(app, a, b), theme = app.theme();
      list = [];
      heads = [];
      if (!fields) return;
      const area = { left: left_margin, top: 20, right: width - 12, bottom: height - 40 };
      const range = extent([...fields.a.values, ...fields.b.values]);
      const x = axis(range[0], range[1], [area.left + 6, area.right - 6], fields.a.log), y = axis(range[0], range[1], [area.bottom - 6, area.top + 6], fields.a.log);
      y_axis(c, theme, area, y);
      x_axis(c, theme, area, x, `${app.store.state.metric}, ${a.label}`, number);
      text(c, b.label, 4, 8, theme.soft, { size: 11 });
      diagonal(c, x, y, theme.soft);
      let above = 0;
      for (let i = 0; i < fields.a.values.length; ++i) {
        if (!Number.isFinite(fields.a.values[i]) || !Number.isFinite(fields.b.values[i])) continue;
        const layer = Math.floor(i / fields.a.heads);
        if (fields.b.values[i] > fields.a.values[i]) ++above;
        list.push({ x: x(fields.a.values[i]), y: y(fields.b.values[i]), colour: theme.depth[third(layer, a.layers)] });
        heads.push({ layer, head: query_head(i % fields.a.heads, fields.a.heads, a.heads.q) });
      }
      dots(c, list, list.length > 300 ? 2.4 : 4, 0.65);
      note.textContent = `On the dashed line both runs are equal. ${above} of ${list.length} heads are higher in ${b.label}.`;
    },
    top: (c) => {
      const theme = app.theme();
      for (const mark of marked(app.store.state)) {
        const many = pair_fields(app, a, b)?.a.heads ?? a.heads.q, first = query_head(key_head(mark.head, many, a.heads.q), many, a.heads.q);
        const i = heads.findIndex((head) => head.layer === mark.layer && head.head === first);
        if (i < 0) continue;
        ring(c, theme, list[i].x, list[i].y, head_colour(theme, mark), 7.5);
        text(c, head_name(mark), list[i].x + 10, list[i].y, theme.ink, { size: 11, weight: 600, halo: theme.paper });
      }
    },
  });
  const pick = (event: MouseEvent) => heads[nearest_dot(list, event.offsetX, event.offsetY)] ?? null;
  surface.canvas.addEventListener("pointermove", (event) => app.store.set({ hover: pick(event), step: null }));
  surface.canvas.addEventListener("pointerleave", () => app.store.set({ hover: null }));
  surface.canvas.addEventListener("click", (event) => {
    const head = pick(event);
    if (head) app.store.pin(head);
  });
  surfaces.push(surface);
  return box;
}

// Layer means of both runs over relative depth, with the range of the heads.
function layer_plot(app: App, a: Run, b: Run, surfaces: Surface[], ends: (() => void)[]): HTMLElement {
  const box = panel("Mean of each layer"), body = element("div", {});
  box.append(element("p", { class: "note" }, "The band goes from the lowest to the highest head of a layer."), body, line_key(app, [a.label, b.label], false, ends));
  surfaces.push(new Surface(body, {
    label: `Layer means of ${a.label} and ${b.label} over depth`, height: () => 280,
    top: (c, width, height) => {
      const theme = app.theme(), area = { left: left_margin, top: 20, right: width - 12, bottom: height - 40 };
      const tracks = [a, b].map((run) => app.data.track(run, app.store.state.source, app.store.state.metric));
      if (!tracks[0] || !tracks[1]) return;
      const all = tracks.map((track) => values_of(track!, app.store.state.brush));
      const range = extent([...all[0], ...all[1]]);
      const x = axis(0, 1, [area.left + 8, area.right - 8]), y = axis(range[0], range[1], [area.bottom - 4, area.top + 4], tracks[0].log && tracks[1].log);
      y_axis(c, theme, area, y);
      x_axis(c, theme, area, x, "relative depth", number);
      text(c, app.store.state.metric, 4, 8, theme.soft, { size: 11 });
      tracks.forEach((track, i) => {
        const means = layer_means(all[i], track!.layers, track!.heads);
        const xs = Float64Array.from(means, (_, layer) => x(track!.layers > 1 ? layer / (track!.layers - 1) : 0.5));
        const rows = Array.from(means, (_, layer) => extent(all[i].subarray(layer * track!.heads, (layer + 1) * track!.heads)));
        band(c, xs, rows.map((row) => row[0]), rows.map((row) => row[1]), y, faded(theme.categories[i], 0.16));
        c.strokeStyle = theme.categories[i];
        c.lineWidth = 2;
        c.beginPath();
        curve(c, xs, means, 0, y);
        c.stroke();
      });
    },
  }));
  return box;
}

// All heads of both runs as rows of ticks and their quartiles.
function distributions(app: App, a: Run, b: Run, surfaces: Surface[]): HTMLElement {
  const box = panel("Distribution of the heads"), body = element("div", {});
  box.append(element("p", { class: "note" }, "A tick is a head, the bar holds the middle half, the dark mark is the median."), body);
  surfaces.push(new Surface(body, {
    label: `Values of all heads of ${a.label} and ${b.label}`, height: () => 200,
    top: (c, width, height) => {
      const theme = app.theme(), area = { left: 12, top: 14, right: width - 12, bottom: height - 40 };
      const tracks = [a, b].map((run) => app.data.track(run, app.store.state.source, app.store.state.metric));
      if (!tracks[0] || !tracks[1]) return;
      const all = tracks.map((track) => Array.from(values_of(track!, app.store.state.brush)).filter(Number.isFinite).sort((u, v) => u - v));
      const range = extent([...all[0], ...all[1]]);
      const x = axis(range[0], range[1], [area.left + 4, area.right - 4], tracks[0].log && tracks[1].log);
      x_axis(c, theme, area, x, app.store.state.metric, number);
      all.forEach((values, i) => {
        const middle = area.top + ((i + 0.6) * (area.bottom - area.top)) / 2;
        text(c, (i ? b : a).label, area.left, middle - 24, theme.soft, { size: 11 });
        c.strokeStyle = faded(theme.categories[i], 0.5);
        c.lineWidth = 1;
        for (const value of values) {
          c.beginPath();
          c.moveTo(x(value), middle - 12);
          c.lineTo(x(value), middle + 12);
          c.stroke();
        }
        const quantile = (share: number) => x(values[Math.min(values.length - 1, Math.floor(share * values.length))]);
        c.fillStyle = theme.categories[i];
        c.fillRect(quantile(0.25), middle - 3, Math.max(2, quantile(0.75) - quantile(0.25)), 6);
        c.fillStyle = theme.ink;
        c.fillRect(quantile(0.5) - 1.5, middle - 8, 3, 16);
      });
    },
  }));
  return box;
}

function condition_name(app: App, letter: string): string {
  const found = app.data.index.study?.conditions.find((one) => one.letter === letter);
  return found?.name.replace(`${letter} `, "") ?? app.data.index.runs.find((run) => run.condition?.letter === letter)?.condition?.tag ?? "";
}

// Losses of all runs over tokens.
function losses(app: App, place: HTMLElement): void {
  const { runs } = app.data.index;
  if (!runs.some((run) => run.steps)) return;
  const shown = figure("Losses of all runs");
  place.append(shown.box);
  // Runs of one condition share a colour.
  const known = new Set(runs.map((run) => run.condition?.letter));
  const letters = known.has(undefined) || known.size === runs.length ? null : (Array.from(known) as string[]);
  const group = (run: Run) => (letters ? letters.indexOf(run.condition!.letter) : runs.indexOf(run));
  const surface = new Surface(shown.body, {
    label: "Training loss of all runs over tokens", height: () => 260,
    top: (c, width, height) => {
      const theme = app.theme(), box = { left: left_margin, top: 8, right: width - 16, bottom: height - 38 };
      const tables = runs.map((run) => columns_of(app, run));
      const range = loss_range(tables.flatMap((table) => (table ? [table.loss] : [])));
      const last = Math.max(...tables.map((table) => (table ? table.tokens[table.tokens.length - 1] : 0)));
      const first = Math.min(...tables.map((table) => (table ? table.tokens[0] : Infinity)));
      const x = time_scale([first, last], box, app.store.state.time === "log"), y = axis(range[0], range[1], [box.bottom - 4, box.top + 4]);
      y_axis(c, theme, box, y);
      x_axis(c, theme, box, x, "tokens");
      tables.forEach((table, i) => {
        if (!table) return;
        const { colour, dash } = look(theme, group(runs[i]));
        c.setLineDash(dash);
        c.strokeStyle = faded(colour, runs.length > 8 ? 0.6 : 1);
        c.lineWidth = runs.length > 8 ? 1.1 : 1.5;
        c.beginPath();
        curve(c, positions(table.tokens, x), table.loss, 0, y);
        c.stroke();
      });
      c.setLineDash([]);
    },
  });
  shown.box.append(line_key(app, letters ? letters.map((letter) => `${letter}: ${condition_name(app, letter)}`) : runs.map((run) => run.label)));
  app.store.on(["theme", "data", "time"], () => surface.draw());
}

function study(app: App, place: HTMLElement): void {
  const given = app.data.index.study!;
  const effects = figure("Effects");
  effects.note.textContent = `${given.descriptive ? "One seed: this describes one run; it does not test a difference. " : "Differences over seeds with 95 % intervals. "}Between the dashed lines (τ = ${number(given.tau)}) a difference does not matter.`;
  const over = figure("Effects over time");
  const chosen = new Set([0, 1, 2].filter((i) => i < given.effects.length));      // the three of the verdict
  const columns = element("div", { class: "columns" }, effects.box, over.box);
  place.append(columns);
  const surface = new Surface(effects.body, {
    label: `Effects with intervals: ${given.effects.map((one) => `${one.pair} ${number(one.difference)}, ${number(one.low)} to ${number(one.high)}`).join("; ")}`,
    height: () => 60 + given.effects.length * 44, top: (c, width, height) => forest(c, app, width, height),
  });
  const surfaces = [surface];
  if (given.over_time && given.over_time.tokens.length > 1) surfaces.push(new Surface(over.body, {
    label: "Effects over tokens with intervals", height: () => Math.max(240, Math.min(360, 60 + given.effects.length * 44)), top: (c, width, height) => effects_over_time(c, app, chosen, width, height),
  }));
  else over.box.hidden = true;
  const layers = figure("Effects by layer");
  if (given.by_layer && Object.values(given.by_layer).some((one) => one.difference.length > 1)) {
    columns.append(layers.box);
    layers.note.textContent = "Differences of each layer with 95 % intervals.";
    surfaces.push(new Surface(layers.body, { label: "Effects by layer with intervals", height: () => 260, top: (c, width, height) => effects_by_layer(c, app, chosen, width, height) }));
  }
  over.note.textContent = "Bands are 95 % intervals. The buttons choose the effects.";
  const key = element("div", { class: "key", role: "group", "aria-label": "Effects shown over time" });
  over.box.append(key);
  const toggles = given.effects.map((_, i) => {
    const toggle: HTMLButtonElement = button("", () => {
      if (chosen.has(i)) chosen.delete(i);
      else chosen.add(i);
      toggle.setAttribute("aria-pressed", String(chosen.has(i)));
      surfaces.forEach((one) => one.draw());
    }, { class: "chip", "aria-pressed": String(chosen.has(i)) });
    key.append(toggle);
    return toggle;
  });
  const update = () => {
    surfaces.forEach((one) => one.draw());
    toggles.forEach((toggle, i) => toggle.replaceChildren(mark(app, look(app.theme(), i), true, true), given.effects[i].pair));
  };
  app.store.on(["theme", "time"], update);
  update();
}

// Dots with intervals; the effects of a layer stand beside each other.
function effects_by_layer(c: CanvasRenderingContext2D, app: App, chosen: Set<number>, width: number, height: number): void {
  const given = app.data.index.study!, theme = app.theme(), box = { left: left_margin, top: 8, right: width - 16, bottom: height - 40 };
  const shown = Array.from(chosen).sort((a, b) => a - b).flatMap((i) => {
    const one = given.by_layer![given.effects[i].name];
    return one ? [{ i, difference: finite(one.difference), low: finite(one.low), high: finite(one.high) }] : [];
  });
  const layers = Math.max(1, ...shown.map((one) => one.difference.length));
  const range = roomy(extent(shown.flatMap((one) => [...one.difference, ...one.low, ...one.high]).concat(0)));
  const x = axis(-0.5, layers - 0.5, [box.left, box.right]), y = axis(range[0], range[1], [box.bottom - 4, box.top + 4]);
  y_axis(c, theme, box, y, 34, signed);
  x_axis(c, theme, box, x, "layer", (value) => (Number.isInteger(value) ? String(value) : ""), false);
  rule(c, box.left, y(0), box.right, y(0), theme.ink);
  shown.forEach((one, k) => one.difference.forEach((value, layer) => {
    if (!Number.isFinite(value)) return;
    const at = x(layer) + (k - (shown.length - 1) / 2) * Math.min(10, (x(1) - x(0)) / (shown.length + 1));
    const { colour, sides } = look(theme, one.i);
    c.strokeStyle = colour;
    c.lineWidth = 2;
    c.beginPath();
    c.moveTo(at, y(Number.isFinite(one.low[layer]) ? one.low[layer] : value));
    c.lineTo(at, y(Number.isFinite(one.high[layer]) ? one.high[layer] : value));
    c.stroke();
    ring(c, theme, at, y(value), colour, 5.5, sides);
  }));
}
// With room around the largest and the smallest.
function roomy([low, high]: [number, number]): [number, number] {
  const room = 0.05 * (high - low);
  return [low - room, high + room];
}

function finite(list: (number | null)[]): number[] {
  return list.map((value) => value ?? NaN);
}

function forest(c: CanvasRenderingContext2D, app: App, width: number, height: number): void {
  const given = app.data.index.study!, theme = app.theme();
  const box: Box = { left: Math.min(130, width * 0.3), top: 8, right: width - 16, bottom: height - 40 };
  const range = extent([...given.effects.flatMap((one) => [one.difference, one.low, one.high]), given.tau, -given.tau].map((value) => value ?? NaN));
  const pad = (range[1] - range[0]) * 0.06;
  const x = axis(range[0] - pad, range[1] + pad, [box.left, box.right]);
  c.fillStyle = faded(theme.muted, 0.14);
  c.fillRect(x(-given.tau), box.top, x(given.tau) - x(-given.tau), box.bottom - box.top);
  x_axis(c, theme, box, x, "difference", signed);
  c.setLineDash([4, 4]);
  for (const edge of [-given.tau, given.tau]) rule(c, x(edge), box.top, x(edge), box.bottom, theme.soft);
  c.setLineDash([]);
  rule(c, x(0), box.top, x(0), box.bottom, theme.ink);
  given.effects.forEach((effect, i) => {
    const y = box.top + ((i + 0.5) * (box.bottom - box.top)) / given.effects.length;
    text(c, effect.pair, 2, y - 8, theme.ink, { weight: 600 });
    text(c, effect.word ?? effect.name, 2, y + 8, theme.soft, { size: 11 });
    if (effect.difference === null) return;
    const { colour, sides } = look(theme, i);
    c.strokeStyle = colour;
    c.lineWidth = 3;
    if (effect.low !== null && effect.high !== null) {
      c.beginPath();
      c.moveTo(x(effect.low), y);
      c.lineTo(x(effect.high), y);
      c.stroke();
    }
    ring(c, theme, x(effect.difference), y, colour, 8, sides);
    text(c, signed(Number(effect.difference.toPrecision(3))), x(effect.difference), y - 15, theme.ink, { align: "center", size: 11, weight: 600, halo: theme.paper });
  });
}

function effects_over_time(c: CanvasRenderingContext2D, app: App, chosen: Set<number>, width: number, height: number): void {
  const given = app.data.index.study!, over = given.over_time!, theme = app.theme();
  const box = { left: left_margin, top: 8, right: width - 16, bottom: height - 40 };
  const lines = given.effects.map((effect, i) => (chosen.has(i) ? over.effects[effect.name] : undefined)).map((one) => one && { difference: finite(one.difference), low: finite(one.low ?? []), high: finite(one.high ?? []) });
  const range = roomy(extent([...lines.flatMap((one) => (one ? [...one.difference, ...one.low, ...one.high] : [])), given.tau, -given.tau]));
  const x = time_scale(over.tokens, box, app.store.state.time === "log"), y = axis(range[0], range[1], [box.bottom - 4, box.top + 4]);
  const xs = positions(over.tokens, x);
  y_axis(c, theme, box, y, 34, signed);
  x_axis(c, theme, box, x, "tokens");
  c.setLineDash([4, 4]);
  for (const edge of [-given.tau, given.tau]) rule(c, box.left, y(edge), box.right, y(edge), theme.soft);
  c.setLineDash([]);
  rule(c, box.left, y(0), box.right, y(0), theme.ink);
  lines.forEach((one, i) => {
    if (!one) return;
    const { colour, dash, sides } = look(theme, i);
    if (one.low.length) band(c, xs, one.low, one.high, y, faded(colour, 0.18));
    c.strokeStyle = colour;
    c.lineWidth = 2;
    c.setLineDash(dash);
    c.beginPath();
    curve(c, xs, one.difference, 0, y);
    c.stroke();
    c.setLineDash([]);
    const end = one.difference.length - 1;      // the shape of the key, at the end of the curve
    if (Number.isFinite(one.difference[end])) ring(c, theme, xs[end], y(one.difference[end]), colour, 5.5, sides);
  });
}
