// When? All heads as curves and as strips, with a brush on their time axis, and the share of each role.
import { App } from "../app";
import { moments_of, place_of, third, Track } from "../data";
import { element, figure, select, swatch, view } from "../dom";
import { Box, rule, text, x_axis, y_axis } from "../draw/axes";
import { all_curves, brush_shade, curve, end_labels, level_lines, positions, strong_curve, time_scale } from "../draw/lines";
import { order_of, strips } from "../draw/strip";
import { Surface } from "../draw/surface";
import { Head, head_name, query_head } from "../head";
import { axis, faded, nearest, number, Scale, tokens, widened } from "../scale";
import { is_pinned, marked } from "../state";
import { head_colour } from "../theme";
import { depth_items, key_of, role_items, role_look } from "./keys";

export const left_margin = 52;

// Drags along the time axis become the brush; a click without a drag calls `click`.
export function brush_input(app: App, canvas: HTMLCanvasElement, geometry: () => { xs: Float64Array; step: number[]; box: Box } | null,
                            click: (x: number, y: number) => void): void {
  let start: number | null = null, moved = false;
  canvas.classList.add("brushed");
  const step_at = (x: number) => {
    const now = geometry();
    return now ? now.step[nearest(now.xs, x)] : 0;
  };
  canvas.addEventListener("pointerdown", (event) => {
    const now = geometry();
    if (!now || event.button !== 0 || event.offsetY < now.box.top) return;
    start = event.offsetX;
    moved = false;
    canvas.setPointerCapture(event.pointerId);
  });
  canvas.addEventListener("pointermove", (event) => {
    if (start === null) return;
    if (Math.abs(event.offsetX - start) > 4) moved = true;
    if (!moved) return;
    const [a, b] = [step_at(start), step_at(event.offsetX)];
    app.store.set({ brush: [Math.min(a, b), Math.max(a, b)] });
  });
  const end = (event: PointerEvent) => {
    if (start !== null && !moved && event.type === "pointerup") click(event.offsetX, event.offsetY);
    start = null;
  };
  canvas.addEventListener("pointerup", end);
  canvas.addEventListener("pointercancel", end);
  canvas.addEventListener("dblclick", () => app.store.set({ brush: null }));
}

export function time(app: App): void {
  curves_view(app);
  strips_view(app);
  roles_view(app);
}

interface Curves { track: Track; box: Box; x: Scale; y: Scale; xs: Float64Array }

function curves_of(app: App, width: number, height: number): Curves | null {
  const track = app.data.current();
  if (!track) return null;
  const box = { left: left_margin, top: 10, right: width - 58, bottom: height - 38 };
  const x = time_scale(track.tokens, box, app.store.state.time === "log");
  const range = widened([track.low, track.high], (track.series.levels ?? []).map((level) => level.value), track.log);
  const y = axis(range[0], range[1], [box.bottom - 4, box.top + 4], track.log);
  return { track, box, x, y, xs: positions(track.tokens, x) };
}

// The head whose curve is nearest to a point, within a reach in pixels.
function head_at(now: Curves, px: number, py: number, reach = 24): { head: Head; step: number } | null {
  const { track, xs, y } = now;
  const moment = nearest(xs, px);
  let best = -1, least = reach;
  for (let head = 0; head < track.layers * track.heads; ++head) {
    const value = track.values[head * track.moments + moment];
    const distance = Math.abs(y(value) - py);
    if (distance < least) {
      least = distance;
      best = head;
    }
  }
  return best < 0 ? null : { head: head_in(track, best), step: track.step[moment] };
}
// The first query head of a place in a track.
function head_in(track: Track, place: number): Head {
  const layer = Math.floor(place / track.heads);
  return { layer, head: query_head(place % track.heads, track.heads, track.run.heads.q) };
}

function curves_view(app: App): void {
  const place = view("curves");
  if (!place) return;
  const { store, data } = app;
  const shown = figure("Every head over time");
  const log: HTMLInputElement = element("input", { type: "checkbox", checked: store.state.time === "log", change: () => store.set({ time: log.checked ? "log" : "linear" }) });
  shown.tools.append(key_of(app, () => depth_items(app)), element("label", { class: "check" }, log, "log time"));
  place.append(shown.box);
  let now: Curves | null = null;
  const surface = new Surface(shown.body, {
    label: "", height: (width) => Math.max(260, Math.min(420, width * 0.42)),
    base: function* (c, width, height) {
      now = curves_of(app, width, height);
      const theme = app.theme();
      if (!now) {
        text(c, data.why_empty(data.run(), store.state.source, store.state.metric), left_margin, 30, theme.soft);
        return;
      }
      const { track, box, xs, y } = now;
      y_axis(c, theme, box, y);
      x_axis(c, theme, box, now.x, "tokens");
      const alpha = (track.layers * track.heads > 200 ? 0.3 : 0.7) * (store.state.pinned.length ? 0.5 : 1);
      const depth = theme.depth.map((colour) => faded(colour, alpha));
      yield* all_curves(c, track, xs, y, (layer) => depth[third(layer, track.layers)]);
      level_lines(c, theme, box, y, track.series.levels ?? []);
    },
    top: (c, width, height) => {
      const drawn = curves_of(app, width, height);
      if (drawn) draw_pinned(c, app, drawn);
    },
  });
  brush_input(app, surface.canvas, () => now && { xs: now.xs, step: now.track.step, box: now.box }, (x, y) => {
    const found = now && head_at(now, x, y);
    if (found) store.pin(found.head);
  });
  surface.canvas.addEventListener("pointermove", (event) => {
    if (event.buttons || !now) return;
    const found = head_at(now, event.offsetX, event.offsetY);
    store.set({ hover: found?.head ?? null, step: found?.step ?? null });
  });
  surface.canvas.addEventListener("pointerleave", () => store.set({ hover: null, step: null }));
  const update = () => {
    const metric = data.metric(store.state.metric);
    shown.note.textContent = `${metric.name}: ${metric.meaning}${metric.unit ? ` (${metric.unit})` : ""}. Drag to choose steps; click a curve to pin its head.`;
    surface.label(`${metric.name} of every head over tokens. The steps can also be chosen with the sliders on top; the table of heads has the numbers.`);
    surface.draw();
  };
  let any = store.state.pinned.length > 0;
  store.on(["run", "source", "metric", "theme", "time"], update);
  store.on(["data"], () => {
    if (data.current() !== now?.track) update();
  });
  store.on(["hover", "brush", "pinned", "step"], () => {
    const has = store.state.pinned.length > 0;      // the other curves fade once a head is pinned
    if (has !== any) surface.draw();
    else surface.draw_top();
    any = has;
  });
  update();
}

function draw_pinned(c: CanvasRenderingContext2D, app: App, now: Curves): void {
  const { pinned, hover, step, brush } = app.store.state, theme = app.theme();
  const { track, box, xs, y } = now;
  brush_shade(c, theme, box, xs, brush ? moments_of(track.step, brush) : null);
  const start = (head: Head) => place_of(track.run, track.heads, head.layer, head.head) * track.moments;
  const ends: { y: number; text: string; colour: string }[] = [];
  const last_y = (head: Head) => {
    for (let i = track.moments - 1; i >= 0; --i) if (Number.isFinite(track.values[start(head) + i])) return y(track.values[start(head) + i]);
    return box.bottom;
  };
  for (const pin of pinned) {
    strong_curve(c, theme, xs, track.values, start(pin), y, theme.categories[pin.slot], 2.4);
    ends.push({ y: last_y(pin), text: head_name(pin), colour: theme.ink });
  }
  if (hover && hover.layer < track.layers) {
    if (!is_pinned(pinned, hover)) {
      strong_curve(c, theme, xs, track.values, start(hover), y, theme.ink, 1.8);
      ends.push({ y: last_y(hover), text: head_name(hover), colour: theme.ink });
    } else strong_curve(c, theme, xs, track.values, start(hover), y, theme.categories[is_pinned(pinned, hover)!.slot], 3.6);
    const at = step === null ? -1 : track.step.indexOf(step);
    if (at >= 0) {
      rule(c, xs[at], box.top, xs[at], box.bottom, theme.muted);
      c.fillStyle = theme.ink;
      c.beginPath();
      c.arc(xs[at], y(track.values[start(hover) + at]), 3.5, 0, 2 * Math.PI);
      c.fill();
    }
  }
  end_labels(c, ends, box.right + 6, box);
}

function strips_view(app: App): void {
  const place = view("strips");
  if (!place) return;
  const { store, data } = app;
  const shown = figure("Strips");
  const order = select("rows by", [{ value: "layer", text: "layer" }, { value: "change", text: "time of change" }], store.state.order,
                       (value) => store.set({ order: value as "layer" | "change" }));
  shown.tools.append(order.box);
  const frame = element("div", { class: "strip-frame" });
  shown.body.append(frame);
  place.append(shown.box);
  let now: { track: Track; box: Box; xs: Float64Array; rows: number[]; high: number } | null = null;
  const high_of = (rows: number) => Math.max(1, Math.min(14, Math.floor(360 / rows)));
  const rows_now = () => {
    const run = data.run(), tracked = data.tracked(run, store.state.source);
    return run.layers * (tracked?.series.find((one) => one.metric === store.state.metric)?.heads ?? 0);
  };
  const surface = new Surface(frame, {
    label: "", height: () => 8 + Math.max(1, rows_now()) * high_of(Math.max(1, rows_now())) + 36,
    base: (c, width, height) => {
      const track = data.current(), theme = app.theme();
      now = null;
      if (!track) return;
      const box = { left: left_margin, top: 4, right: width - 58, bottom: height - 38 };
      const x = time_scale(track.tokens, box, store.state.time === "log");
      now = { track, box, xs: positions(track.tokens, x), rows: order_of(track, store.state.order), high: (box.bottom - box.top) / (track.layers * track.heads) };
      strips(c, theme, track, now.rows, now.xs, box);
      x_axis(c, theme, box, x, "tokens", tokens, false);
      if (store.state.order === "layer") layer_labels(c, app, track, box, now.high);
      else text(c, "early", box.left - 7, box.top + 6, theme.soft, { align: "right", size: 11 });
      if (store.state.order === "change") text(c, "late", box.left - 7, box.bottom - 6, theme.soft, { align: "right", size: 11 });
    },
    top: (c) => {
      if (!now) return;
      const { track, box, xs, rows, high } = now, { brush } = store.state, theme = app.theme();
      brush_shade(c, theme, box, xs, brush ? moments_of(track.step, brush) : null);
      const row_of = (head: Head) => rows.indexOf(place_of(track.run, track.heads, head.layer, head.head));
      const ends = marked(store.state).map((head) => {
        const middle = box.top + (row_of(head) + 0.5) * high;
        mark_row(c, box, middle, high, head_colour(theme, head));
        return { y: middle, text: head_name(head), colour: theme.ink };
      });
      end_labels(c, ends, box.right + 10, box);
    },
  });
  const head_under = (event: MouseEvent | { offsetX: number; offsetY: number }) => {
    if (!now) return null;
    const row = Math.floor((event.offsetY - now.box.top) / now.high);
    return row >= 0 && row < now.rows.length ? { head: head_in(now.track, now.rows[row]), step: now.track.step[nearest(now.xs, event.offsetX)] } : null;
  };
  brush_input(app, surface.canvas, () => now && { xs: now.xs, step: now.track.step, box: now.box }, (offsetX, offsetY) => {
    const found = head_under({ offsetX, offsetY });
    if (found) store.pin(found.head);
  });
  surface.canvas.addEventListener("pointermove", (event) => {
    if (event.buttons) return;
    const found = head_under(event);
    store.set({ hover: found?.head ?? null, step: found?.step ?? null });
  });
  surface.canvas.addEventListener("pointerleave", () => store.set({ hover: null, step: null }));
  const update = () => {
    const track = data.current();
    shown.note.textContent = `A row is a head, time runs to the right, colour is ${store.state.metric}${track ? `: ${number(track.low)} (dark) to ${number(track.high)} (bright)` : ""}. ${
      store.state.order === "change" ? "Time of change: where a head changes most within a twentieth of the moments." : ""}`;
    surface.label(`${store.state.metric} of every head as strips over tokens.`);
    surface.draw();
  };
  store.on(["run", "source", "metric", "theme", "time", "order"], update);
  store.on(["data"], () => {
    if (data.current() !== now?.track) update();
  });
  store.on(["hover", "brush", "pinned"], () => surface.draw_top());
  update();
}

// An outline; of rows too thin for one, a mark at both ends.
function mark_row(c: CanvasRenderingContext2D, box: Box, middle: number, high: number, colour: string): void {
  c.strokeStyle = c.fillStyle = colour;
  c.lineWidth = 2;
  if (high >= 6) return c.strokeRect(box.left - 1, middle - high / 2 - 1, box.right - box.left + 2, high + 2);
  const size = Math.max(4, high);
  c.fillRect(box.left - 7, middle - size / 2, 7, size);
  c.fillRect(box.right, middle - size / 2, 7, size);
}

function layer_labels(c: CanvasRenderingContext2D, app: App, track: Track, box: Box, high: number): void {
  const theme = app.theme(), each = track.heads * high, every = Math.ceil(16 / each);
  for (let layer = 0; layer < track.layers; ++layer) {
    const top = box.top + layer * each;
    if (layer) rule(c, box.left - 6, top, box.left - 1, top, theme.muted);
    if (layer % every === 0) text(c, `L${layer}`, box.left - 8, top + each / 2, theme.soft, { align: "right", size: 11 });
  }
}

// Number of heads in each role over time, stacked.
function roles_view(app: App): void {
  const place = view("role-timeline");
  const { store, data } = app;
  if (!place || !data.index.runs.some((run) => run.roles?.of_head && run.roles.step.length > 1)) return;
  const shown = figure("Roles over time");
  shown.box.append(key_of(app, () => role_items(app, (role) => swatch(area_colour(app, role)))));
  place.append(shown.box);
  const surface = new Surface(shown.body, {
    label: "Share of heads in each role over tokens. The table below lists the changes.", height: () => 200,
    top: (c, width, height) => {
      const run = data.run(), roles = run.roles, theme = app.theme();
      const bytes = roles?.of_head && data.block(roles.of_head.block);
      if (!roles || !bytes) return;
      const box = { left: left_margin, top: 8, right: width - 58, bottom: height - 38 };
      const x = time_scale(roles.tokens, box, store.state.time === "log"), xs = positions(roles.tokens, x);
      const heads = run.layers * run.heads.q, y = axis(0, heads, [box.bottom, box.top]);
      const shares = stacked(bytes, heads, roles.step.length, data.index.roles.length);
      shares.slice(1).forEach((upper, role) => {
        c.fillStyle = faded(area_colour(app, role), 0.85);
        c.beginPath();
        for (let i = 0; i < xs.length; ++i) c.lineTo(xs[i], y(upper[i]));
        for (let i = xs.length - 1; i >= 0; --i) c.lineTo(xs[i], y(shares[role][i]));
        c.fill();
        c.strokeStyle = theme.paper;
        c.lineWidth = 1;
        c.beginPath();
        curve(c, xs, upper, 0, y);
        c.stroke();
        // The letter, where the role has most heads and there is room for it.
        const sizes = Array.from(upper, (value, i) => value - shares[role][i]), most = Math.max(...sizes), at = sizes.indexOf(most);
        if (y(0) - y(most) > 11) text(c, data.index.roles[role].letter, Math.max(box.left + 8, Math.min(box.right - 8, xs[at])), y(shares[role][at] + most / 2), theme.ink,
                                      { align: "center", weight: 700, halo: theme.paper });
      });
      const top = shares[shares.length - 1];      // above: heads without a role
      c.fillStyle = area_colour(app, data.index.roles.length);
      c.beginPath();
      for (let i = 0; i < xs.length; ++i) c.lineTo(xs[i], y(top[i]));
      c.lineTo(xs[xs.length - 1], y(heads));
      c.lineTo(xs[0], y(heads));
      c.fill();
      y_axis(c, theme, { ...box, right: box.left }, y, 40);
      x_axis(c, theme, box, x, "tokens", tokens, false);
      brush_shade(c, theme, box, xs, store.state.brush ? moments_of(roles.step, store.state.brush) : null);
    },
  });
  const update = () => {
    const run = data.run();
    shown.note.textContent = run.roles ? `Heads in each role, definition ${run.roles.definition}; ${run.roles.transitions.length} changes.` : "This run has no roles.";
    surface.draw();
  };
  store.on(["run", "theme", "data", "time"], update);
  store.on(["brush"], () => surface.draw());
  update();
}

function area_colour(app: App, role: number): string {
  return app.data.index.roles[role] ? role_look(app, role).colour : app.theme().absent;
}

// Lower edges of the roles [role][moment]; the last is the upper edge of the last role.
function stacked(bytes: Uint8Array, heads: number, moments: number, roles: number): Float64Array[] {
  const edges = Array.from({ length: roles + 1 }, () => new Float64Array(moments));
  for (let moment = 0; moment < moments; ++moment) {
    const counts = new Float64Array(roles);
    for (let head = 0; head < heads; ++head) {
      const role = bytes[moment * heads + head];
      if (role < roles) ++counts[role];
    }
    for (let role = 0; role < roles; ++role) edges[role + 1][moment] = edges[role][moment] + counts[role];
  }
  return edges;
}
