// Why? One card for each pinned head: all metrics against its layer, the tests of the roles, its attention on the texts.
import { App } from "../app";
import { decode } from "../block";
import { place_of, Track } from "../data";
import { button, element, link, sideways, swatch, view } from "../dom";
import { rule, text } from "../draw/axes";
import { image } from "../draw/image";
import { curve, positions, strong_curve, time_scale } from "../draw/lines";
import { dots, ring } from "../draw/scatter";
import { Surface } from "../draw/surface";
import { head_name, key_head, parse_head, role_of, score_of } from "../head";
import { axis, extent, faded, number, Scale, widened } from "../scale";
import { Level, Roles, Run, Score, Test } from "../source";
import { Pin } from "../state";
import { attention } from "./attention";
import { pin_row } from "./controls";
import { examples } from "./examples";

export function card(app: App): void {
  const place = view("cards");
  if (!place) return;
  const empty = element("p", { class: "empty" }, "No head is pinned. Click a cell of the map, a curve or a row of the table, or type a name such as L3H1 above: its card opens here.");
  const list = element("div", { class: "cards" });
  place.append(empty, list);
  let open = new Map<string, Card>();
  let names: string[] | null = null;
  const update = () => {
    const { pinned, run } = app.store.state;
    const kept = new Map<string, Card>();
    for (const pin of pinned) {
      const key = `${run}|${pin.layer}.${pin.head}|${pin.slot}`;
      kept.set(key, open.get(key) ?? new Card(app, pin));
    }
    open.forEach((old, key) => {
      if (!kept.has(key)) old.remove();
    });
    open = kept;
    list.replaceChildren(...Array.from(kept.values(), (one) => one.box));
    empty.hidden = pinned.length > 0;
    const before = names, now = pinned.map(head_name);
    names = now;
    if (!before) return;      // what the page starts with is not news
    const opened = now.filter((name) => !before.includes(name)), closed = before.filter((name) => !now.includes(name));
    if (opened.length) app.say(`${opened.join(", ")} pinned. A link below the map goes to the card.`);
    else if (closed.length) app.say(`${closed.join(", ")} unpinned`);
  };
  document.querySelectorAll<HTMLElement>(".nearest tr[data-head], .transitions tr[data-head]").forEach((row) => {
    const head = parse_head(row.dataset.head!);
    if (head) row.addEventListener("click", () => pin_row(app, head));
  });
  app.store.on(["pinned", "run"], update);
  app.store.on(["theme", "data", "source", "time", "metric"], () => open.forEach((one) => one.draw()));
  update();
}

export function card_links(app: App): HTMLElement {
  const links = element("span", { class: "card-links" });
  const update = () => links.replaceChildren(...app.store.state.pinned.map((pin) => link(`card of ${head_name(pin)}`, () => document.getElementById(`card-${head_name(pin)}`))));
  app.store.on(["pinned"], update);
  update();
  return links;
}

class Card {
  readonly box = element("article", { class: "card" });
  private surfaces: Surface[] = [];
  private drawn: (() => void)[] = [];

  constructor(private app: App, private pin: Pin) {
    const run = app.data.run();
    this.box.style.setProperty("--mark", `var(--category-${pin.slot})`);
    this.box.append(this.head(run), this.curves());
    const score = score_of(run, pin);
    if (run.roles && score) this.box.append(tests(app, run.roles, score));
    const gain = this.gain(run);
    if (gain) this.box.append(gain);
    const found = examples(app, run, pin);
    const shown = attention(app, run, pin);
    if (shown) {
      this.box.append(shown.box);
      this.surfaces.push(...shown.surfaces);
      this.drawn.push(shown.draw);
    }
    if (run.attention?.heads.length && !shown) this.box.append(element("p", { class: "note" }, `The page holds attention on texts of ${run.attention.heads.length} heads; this one is not among them.`));
    if (found) {
      this.box.append(found.box);
      this.drawn.push(found.draw);
    }
  }
  remove(): void {
    this.surfaces.forEach((surface) => surface.remove());
    this.box.remove();
  }
  draw(): void {
    this.surfaces.forEach((surface) => surface.draw());
    this.drawn.forEach((draw) => draw());
  }

  private head(run: Run): HTMLElement {
    const { app, pin } = this;
    const score = score_of(run, pin), role = role_of(app.data.index.roles, score);
    const facts = [`layer ${pin.layer}`, `query head ${pin.head}`, `key head ${key_head(pin.head, run.heads.k, run.heads.q)}`];
    if (score && !role) facts.push("no role");
    if (score && role) facts.push(`${role.text}${score.since !== null ? ` since step ${score.since}` : ""}`);
    return element("div", { class: "card-head" }, element("h3", { id: `card-${head_name(pin)}`, tabindex: -1 }, swatch("var(--mark)"), head_name(pin)), element("p", {}, facts.join(" · ")),
                   button("Unpin", () => app.store.pin(pin), { class: "quiet", "aria-label": `Unpin ${head_name(pin)}` }));
  }

  // Small curves of all metrics. The other heads of the layer are grey.
  private curves(): HTMLElement {
    const { app, pin } = this;
    const box = element("div", { class: "small" });
    const names = () => app.data.tracked(app.data.run(), app.store.state.source)?.series.map((series) => series.metric) ?? [];
    const moments = () => app.data.tracked(app.data.run(), app.store.state.source)?.step.length ?? 0;
    const shape = (width: number) => {
      const columns = Math.max(2, Math.floor(width / 150));
      return { columns, rows: Math.ceil(names().length / columns), wide: width / columns, high: moments() > 1 ? 90 : 60 };
    };
    const surface = new Surface(box, {
      label: `All metrics of ${head_name(pin)} over time, against the other heads of layer ${pin.layer}. The list of metrics above chooses one.`,
      height: (width) => shape(width).rows * shape(width).high,
      top: (c, width) => {
        const { columns, wide, high } = shape(width);
        names().forEach((name, i) => {
          const track = app.data.track(app.data.run(), app.store.state.source, name);
          small(c, app, pin, name, track, (i % columns) * wide, Math.floor(i / columns) * high, wide - 14, high);
        });
      },
    });
    surface.canvas.classList.add("clickable");
    surface.canvas.addEventListener("click", (event) => {
      const { columns, wide, high } = shape(surface.width);
      const metric = names()[Math.floor(event.offsetY / high) * columns + Math.floor(event.offsetX / wide)];
      if (metric) app.store.set({ metric });
    });
    this.surfaces.push(surface);
    return box;
  }

  // The gain of QK-Norm of the layer: dimension × time, for queries and keys.
  private gain(run: Run): HTMLElement | null {
    const { gains } = run, { app, pin } = this;
    if (!gains || gains.step.length < 2) return null;
    const box = element("div", { class: "small" });
    let all: Float32Array | undefined;
    const surface = new Surface(box, {
      label: `Gain of layer ${pin.layer}, one row for each dimension, over time`, height: () => 26 + Math.min(128, gains.d_k * 2),
      top: (c, width, height) => {
        const bytes = app.data.block(gains.block), theme = app.theme();
        if (!bytes) return;
        all ??= decode(bytes, gains, 2 * gains.layers * gains.d_k, gains.step.length);
        const values = all, size = gains.d_k * gains.step.length;
        const [low, high] = extent(values), most = Math.max(Math.abs(high - 1), Math.abs(low - 1)) || 1;
        ["query", "key"].forEach((kind, i) => {
          const start = (i * gains.layers + pin.layer) * size;
          const left = i * (width / 2 + 4), wide = width / 2 - 8;
          text(c, `${kind} gain${wide > 190 ? ` of layer ${pin.layer}` : ""}: 1 ± ${number(most, 2)}`, left, 10, theme.soft, { size: 11 });
          image(c, gains.step.length, gains.d_k, (words) => words.forEach((_, at) => {
            words[at] = theme.divergence.words[theme.divergence.place((values[start + at] - 1) / (2 * most) + 0.5)];
          }), left, 20, wide, height - 22);
        });
      },
    });
    this.surfaces.push(surface);
    return box;
  }
}

function small(c: CanvasRenderingContext2D, app: App, pin: Pin, name: string, track: Track | undefined, left: number, top: number, width: number, high: number): void {
  const theme = app.theme(), chosen = app.store.state.metric === name;
  text(c, name, left, top + 9, chosen ? theme.ink : theme.soft, { size: 11, weight: chosen ? 700 : 400 });
  if (!track) return;
  if (track.moments === 1) return one_moment(c, app, pin, track, left, top, width);
  const box = { left, top: top + 20, right: left + width, bottom: top + high - 22 };
  const xs = positions(track.tokens, time_scale(track.tokens, box, app.store.state.time === "log"));
  const first = pin.layer * track.heads * track.moments;
  const level = baseline(track);
  const [low, high_value] = widened(extent(track.values.subarray(first, first + track.heads * track.moments)), level ? [level.value] : [], track.log);
  const y = axis(low, high_value, [box.bottom, box.top], track.log);
  const own = place_of(track.run, track.heads, pin.layer, pin.head);
  rule(c, box.left, box.bottom + 2, box.right, box.bottom + 2, theme.grid);
  c.lineWidth = 0.8;
  c.strokeStyle = faded(theme.muted, 0.7);
  for (let head = pin.layer * track.heads; head < (pin.layer + 1) * track.heads; ++head) {
    if (head === own) continue;
    c.beginPath();
    curve(c, xs, track.values, head * track.moments, y);
    c.stroke();
  }
  strong_curve(c, theme, xs, track.values, own * track.moments, y, theme.categories[pin.slot], 1.8);
  if (level) baseline_mark(c, app, y, level, box.left, top + high - 10, (at) => rule(c, box.left, at, box.right, at, theme.soft));
  text(c, number(track.values[(own + 1) * track.moments - 1], 3), box.right, top + 9, theme.ink, { size: 11, align: "right", weight: 600 });
}

// What a head that does nothing gives. What roles ask for stands in the tests.
function baseline(track: Track): Level | undefined {
  return track.series.levels?.find((level) => !level.role);
}
// A dashed line, where it is within the scale, and its text below.
function baseline_mark(c: CanvasRenderingContext2D, app: App, scale: Scale, level: Level, left: number, below: number, line: (at: number) => void): void {
  const [low, high] = scale.domain(), inside = level.value >= low && level.value <= high;
  c.setLineDash([3, 3]);
  if (inside) line(scale(level.value));
  c.setLineDash([]);
  text(c, `${inside ? "┄" : level.value > high ? "↑" : "↓"} ${level.text}`, left, below, app.theme().soft, { size: 10 });
}

// One moment has no curve: the heads of the layer as dots on a line.
function one_moment(c: CanvasRenderingContext2D, app: App, pin: Pin, track: Track, left: number, top: number, width: number): void {
  const theme = app.theme(), first = pin.layer * track.heads, y = top + 27;
  const own = place_of(track.run, track.heads, pin.layer, pin.head);
  const level = baseline(track), range = widened([track.low, track.high], level ? [level.value] : [], track.log);
  const x = axis(range[0], range[1], [left + 6, left + width - 6], track.log);
  rule(c, left, y, left + width, y, theme.grid);
  const others = Array.from({ length: track.heads }, (_, i) => first + i).filter((head) => head !== own && Number.isFinite(track.values[head]));
  dots(c, others.map((head) => ({ x: x(track.values[head]), y: y + 0.5, colour: theme.muted })), 3, 0.8);
  if (level) baseline_mark(c, app, x, level, left, top + 43, (at) => rule(c, at, y - 7, at, y + 8, theme.soft));
  if (Number.isFinite(track.values[own])) ring(c, theme, x(track.values[own]), y + 0.5, theme.categories[pin.slot], 6);
  text(c, number(track.values[own], 3), left + width, top + 9, theme.ink, { size: 11, align: "right", weight: 600 });
}

interface Tried { role: number; tests: { test: Test; value: number | null }[]; gap: number }      // the largest one to a minimum; not above 0: all passed

// What a head scores in the tests of each role: roles that it passes first, then by how near it comes.
function tried(roles: Roles, score: Score): Tried[] {
  const all = new Map<number, Tried>();
  roles.tests.forEach((test, i) => {
    const one = all.get(test.role) ?? { role: test.role, tests: [], gap: -Infinity };
    const value = score.values[i];
    one.tests.push({ test, value });
    one.gap = Math.max(one.gap, value === null ? Infinity : test.minimum - value);
    all.set(test.role, one);
  });
  return Array.from(all.values()).sort((a, b) => (a.gap <= 0 && b.gap <= 0 ? 0 : a.gap - b.gap));      // that it passes: in the order of the definition
}

function tests(app: App, roles: Roles, score: Score): HTMLElement {
  const box = element("div", { class: "tests" }, element("h4", {}, "Tests of the roles"));
  tried(roles, score).forEach(({ role, tests: list, gap }, i) => {
    const name = app.data.index.roles[role]?.text ?? "", passed = list.filter(({ test, value }) => value !== null && value >= test.minimum).length;
    const rows = list.map(({ test, value }) => {
      const good = value !== null && value >= test.minimum;
      return element("tr", { class: good ? "passed" : "failed" }, element("th", { scope: "row", title: test.metric }, test.score),
                     element("td", { class: "number" }, meter(test, value), number(value, 3)), element("td", { class: "number" }, `≥ ${number(test.minimum, 3)}`),
                     element("td", { class: "result" }, value === null ? "not measured" : `${good ? "✓ passed" : "✗ failed"} by ${number(Math.abs(value - test.minimum), 2)}`));
    });
    const result = gap > 0 ? `${passed} of ${list.length} passed${gap < Infinity ? `, short by ${number(gap, 2)}` : ", not all measured"}` : role === score.role ? "its role" : "passed, but another role comes first";
    const names = ["score", "value", "minimum", "result"].map((word, k) => element("th", { scope: "col", class: k === 1 || k === 2 ? "number" : "" }, word));
    const frame = element("div", { class: "frame", tabindex: 0, role: "group", "aria-label": `Tests of ${name}` },
                          element("table", {}, element("thead", {}, element("tr", {}, ...names)), element("tbody", {}, ...rows)));
    box.append(element("details", { open: i === 0 }, element("summary", {}, element("b", {}, name), `: ${result}`), frame, sideways(frame)));
  });
  return box;
}

// A bar of the value with a tick at its minimum. Scores are 0 to 1.
function meter(test: Test, value: number | null): HTMLElement {
  const bar = element("span", { class: "meter", "aria-hidden": "true" }, element("span", { class: "filled" }), element("span", { class: "bound" }));
  (bar.children[0] as HTMLElement).style.width = `${100 * (value ?? 0)}%`;
  (bar.children[1] as HTMLElement).style.left = `${100 * test.minimum}%`;
  return bar;
}
