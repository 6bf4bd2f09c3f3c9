// What happened? Losses, events, learning rate, gradient norm and speed on one token axis.
import { App } from "../app";
import { floats } from "../block";
import { moments_of } from "../data";
import { element, figure, swatch, view } from "../dom";
import { Box, rule, text, x_axis, y_axis } from "../draw/axes";
import { band, brush_shade, curve, level_lines, positions, time_scale } from "../draw/lines";
import { Surface } from "../draw/surface";
import { axis, count, extent, faded, nearest, number, Scale, tokens } from "../scale";
import { Run } from "../source";
import { key_of } from "./keys";
import { brush_input, left_margin } from "./time";

const panel_names: { [column: string]: string } = { lr: "learning rate", grad_norm: "gradient norm", tokens_per_s: "tokens/s" };
const loss_high = 230, lane_high = 26, panel_high = 58;

// Columns of the steps table: floats [column][row].
export function columns_of(app: App, run: Run): { [name: string]: Float32Array } | null {
  if (!run.steps) return null;
  const bytes = app.data.block(run.steps.block);
  if (!bytes) return null;
  const all = floats(bytes), { rows, columns } = run.steps;
  return Object.fromEntries(columns.map((name, i) => [name, all.subarray(i * rows, (i + 1) * rows)]));
}

function has_values(values: Float32Array | undefined): boolean {
  return values !== undefined && values.some(Number.isFinite);
}

export function loss_range(lists: ArrayLike<number | null>[]): [number, number] {
  const all: number[] = [];
  for (const list of lists) for (let i = 0; i < list.length; ++i) {
    const value = list[i];
    if (value !== null && Number.isFinite(value)) all.push(value);
  }
  return extent(all);
}

interface Drawn { box: Box; xs: Float64Array; step: number[]; x: Scale }

export function loss(app: App): void {
  const place = view("loss");
  const { store, data } = app;
  // One probe alone is a number of the header, not a course.
  if (!place || !data.index.runs.some((run) => run.steps || (run.probes && run.probes.step.length > 1))) return;
  const shown = figure("Loss");
  shown.tools.append(legend(app));
  place.append(shown.box);
  let now: Drawn | null = null;
  const panels = () => (data.run().steps?.columns ?? []).filter((name) => panel_names[name]);
  const surface = new Surface(shown.body, {
    label: "Training and validation loss over tokens", height: () => loss_high + lane_high + panels().length * panel_high + 40,
    base: (c, width, height) => {
      now = draw_loss(c, app, width, height, panels());
    },
    top: (c) => {
      if (!now) return;
      const tracked = data.tracked(data.run(), store.state.source), { brush } = store.state;
      if (tracked && brush) {
        const { first, last } = moments_of(tracked.step, brush);
        const xs = Float64Array.from([tracked.tokens[first], tracked.tokens[last]], (value) => now!.x(Math.max(now!.x.domain()[0], value)));
        brush_shade(c, app.theme(), now.box, xs, { first: 0, last: 1 });
      }
      if (pointed !== null) rule(c, now.xs[pointed], now.box.top, now.xs[pointed], now.box.bottom, app.theme().muted);
    },
  });
  let pointed: number | null = null;
  surface.canvas.addEventListener("pointermove", (event) => {
    pointed = now ? nearest(now.xs, event.offsetX) : null;
    shown.readout.textContent = pointed === null ? "" : words(app, pointed);
    surface.draw_top();
  });
  surface.canvas.addEventListener("pointerleave", () => {
    pointed = null;
    shown.readout.textContent = summary(app);
    surface.draw_top();
  });
  brush_input(app, surface.canvas, () => {
    const tracked = data.tracked(data.run(), store.state.source);
    return now && tracked ? { xs: positions(tracked.tokens, now.x), step: tracked.step, box: now.box } : null;
  }, () => undefined);
  const update = () => {
    shown.readout.textContent = summary(app);
    shown.note.textContent = "The line is the last value of each group of steps; the band goes from the smallest to the largest, so no spike is lost.";
    surface.label(`Training and validation loss over tokens. ${summary(app)}`);
    surface.draw();
  };
  store.on(["run", "theme", "time"], update);
  store.on(["data"], () => {
    if (!now) update();
  });
  store.on(["brush"], () => surface.draw_top());
  update();
}

function legend(app: App): HTMLElement {
  return key_of(app, () => {
    const kinds = new Set((app.data.run().events ?? []).filter((event) => event.tokens !== null).map((event) => event.kind));
    const curves = ["training", "validation"].map((name, i) => element("li", {}, swatch(app.theme().categories[i], i ? "dot" : "line"), name));
    return [...curves, ...Array.from(kinds, (kind) => element("li", {}, `${signs[kind] ?? "◇"} ${kind}`))];
  });
}

function summary(app: App): string {
  const columns = columns_of(app, app.data.run());
  if (!columns?.loss) return "";
  const last = columns.loss.length - 1;
  return `Last: step ${count(columns.step[last])}, ${tokens(columns.tokens[last])} tokens, loss ${number(columns.loss[last])}.`;
}

function words(app: App, row: number): string {
  const columns = columns_of(app, app.data.run());
  if (!columns) return "";
  const parts = [`step ${count(columns.step[row])}`, `${tokens(columns.tokens[row])} tokens`];
  for (const [name, values] of Object.entries(columns)) {
    if (name === "step" || name === "tokens" || name === "loss_min" || name === "loss_max" || !Number.isFinite(values[row])) continue;
    const range = name === "loss" && columns.loss_min ? ` (${number(columns.loss_min[row])} to ${number(columns.loss_max[row])})` : "";
    parts.push(`${panel_names[name] ?? name} ${number(values[row])}${range}`);
  }
  const run = app.data.run(), near = (columns.tokens[columns.tokens.length - 1] - columns.tokens[0]) / 150;
  for (const event of run.events ?? [])
    if (event.tokens !== null && Math.abs(event.tokens - columns.tokens[row]) < near) parts.push(`${signs[event.kind] ?? "◇"} ${event.kind}${event.text && event.text !== event.kind ? `: ${event.text}` : ""}`);
  return parts.join(" · ");
}

function draw_loss(c: CanvasRenderingContext2D, app: App, width: number, height: number, panels: string[]): Drawn | null {
  const run = app.data.run(), theme = app.theme(), columns = columns_of(app, run);
  if (run.steps && !columns) return null;
  const box = { left: left_margin, top: 8, right: width - 58, bottom: height - 38 };
  const all_tokens = columns?.tokens ?? run.probes?.tokens ?? [0, 1];
  const x = time_scale(all_tokens, box, app.store.state.time === "log"), xs = positions(all_tokens, x);
  const main = { ...box, bottom: loss_high - 8 };
  const levels = run.levels ?? [];
  const range = loss_range([columns?.loss_max ?? columns?.loss ?? [], columns?.loss_min ?? [], run.probes?.val_loss ?? [], levels.map((level) => level.value)]);
  const y = axis(range[0], range[1], [main.bottom - 4, main.top + 4], range[0] > 0 && range[1] / range[0] > 20);
  x_axis(c, theme, box, x, "tokens");
  y_axis(c, theme, main, y);
  if (columns?.loss) {
    if (columns.loss_min) band(c, xs, columns.loss_min, columns.loss_max, y, faded(theme.categories[0], 0.28));
    c.strokeStyle = theme.categories[0];
    c.lineWidth = 1.5;
    c.lineJoin = "round";
    c.beginPath();
    curve(c, xs, columns.loss, 0, y);
    c.stroke();
  }
  draw_validation(c, app, x, y);
  draw_levels(c, app, main, y, columns?.loss ?? []);
  draw_events(c, app, x, { ...box, top: loss_high, bottom: loss_high + lane_high });
  panels.forEach((name, i) => {
    const top = loss_high + lane_high + i * panel_high;
    if (columns && has_values(columns[name])) draw_panel(c, app, name, columns[name], xs, { ...box, top: top + 18, bottom: top + panel_high - 4 });
  });
  const step = Array.from(columns?.step ?? run.probes?.step ?? [0, 1]);
  return { box, xs, step, x };
}

// The label of a level stands on the side where the loss is farther away.
function draw_levels(c: CanvasRenderingContext2D, app: App, box: Box, y: Scale, losses: ArrayLike<number>): void {
  const first = losses[0], last = losses[losses.length - 1], levels = app.data.run().levels ?? [];
  for (const side of ["left", "right"] as const) {
    const own = levels.filter(({ value }) => (Math.abs(first - value) > Math.abs(last - value)) === (side === "left"));
    level_lines(c, app.theme(), box, y, own.map(({ name, value }) => ({ value, text: `${name} ${number(value, 3)}` })), side);
  }
}

function draw_validation(c: CanvasRenderingContext2D, app: App, x: Scale, y: Scale): void {
  const { probes } = app.data.run(), theme = app.theme();
  if (!probes) return;
  const xs = positions(probes.tokens, x);
  const values = probes.val_loss.map((value) => value ?? NaN);
  c.strokeStyle = c.fillStyle = theme.categories[1];
  c.lineWidth = 1.5;
  c.beginPath();
  curve(c, xs, values, 0, y);
  c.stroke();
  values.forEach((value, i) => {
    if (!Number.isFinite(value) || (values.length > 60 && i % Math.ceil(values.length / 60))) return;
    c.beginPath();
    c.arc(xs[i], y(value), 2.8, 0, 2 * Math.PI);
    c.fill();
  });
}

const signs: { [kind: string]: string } = { checkpoint: "◆", resume: "↻", spike: "▲", probe: "•", end: "■", start: "▸", warning: "✕" };

function draw_events(c: CanvasRenderingContext2D, app: App, x: Scale, box: Box): void {
  const theme = app.theme();
  if (!app.data.run().events?.length) return;
  text(c, "events", box.left - 7, (box.top + box.bottom) / 2, theme.soft, { align: "right", size: 11 });
  rule(c, box.left, (box.top + box.bottom) / 2, box.right, (box.top + box.bottom) / 2, theme.grid);
  for (const event of app.data.run().events ?? []) {
    if (event.tokens === null) continue;
    const at = x(Math.max(x.domain()[0], event.tokens));
    const loud = event.kind === "spike" || event.kind === "warning";
    text(c, signs[event.kind] ?? "◇", at, (box.top + box.bottom) / 2, loud ? theme.depth[2] : theme.soft, { align: "center", size: 12 });
  }
}

function draw_panel(c: CanvasRenderingContext2D, app: App, name: string, values: Float32Array, xs: Float64Array, box: Box): void {
  const theme = app.theme();
  let [low, high] = extent(values);
  if (name === "lr") low = 0;
  const y = axis(low, high, [box.bottom, box.top]);
  text(c, panel_names[name], box.left, box.top - 9, theme.soft, { size: 11 });
  for (const edge of [low, high]) {
    rule(c, box.left, y(edge), box.right, y(edge), theme.grid);
    text(c, name === "tokens_per_s" ? tokens(edge) : number(edge, 3), box.left - 7, y(edge), theme.soft, { align: "right", size: 10 });
  }
  c.strokeStyle = theme.soft;
  c.lineWidth = 1.1;
  c.beginPath();
  curve(c, xs, values, 0, y);
  c.stroke();
}
