// The bar on top: what is shown (run, source, metric, colour), when (steps), which heads are pinned, and the readout.
import { App } from "../app";
import { corresponds, first_tracked, moments_of, other_of, place_of } from "../data";
import { button, Choice, element, fill, problem, select, swatch, view } from "../dom";
import { Head, head_name, key_head, parse_head, role_of, score_of } from "../head";
import { count, number, signed, tokens } from "../scale";
import { is_pinned, Mode, State } from "../state";

const mode_names: { [mode in Mode]: string } = {
  value: "value", layer: "minus layer mean", change: "change over the steps", run: "minus other run",
};
export function mode_name(mode: Mode): string {
  return mode_names[mode];
}

export function metric_choices(app: App, state: State): Choice[] {
  const run = app.data.run(state);
  return app.data.index.metrics.filter((metric) => app.data.has(run, state.source, metric.name))
    .map((metric) => ({ value: metric.name, text: metric.name, group: `${metric.group} (${metric.kind === "k" ? "keys" : "queries"})` }))
    .sort((a, b) => a.group.localeCompare(b.group));
}
export function run_choices(app: App): Choice[] {
  return app.data.index.runs.map((run, i) => ({ value: String(i), text: run.label }));
}
function mode_choices(app: App, state: State): Choice[] {
  const run = app.data.run(state), other = app.data.index.runs[state.other];
  return (Object.keys(mode_names) as Mode[]).filter((mode) => mode !== "run" || app.data.index.runs.length > 1)
    .map((mode) => ({ value: mode, text: mode_names[mode], disabled: mode === "run" && !(other && other !== run && corresponds(run, other)) }));
}

export function controls(app: App): void {
  const place = view("controls");
  if (!place) return;
  const settings = element("div", { class: "settings" }), now = element("div", { class: "now" });
  place.append(element("div", { class: "bar", role: "region", "aria-label": "What is shown" }, settings, now));
  add_settings(app, settings);
  add_steps(app, now);
  add_readout(app, now);
  add_keys(app);
}

function add_settings(app: App, place: HTMLElement): void {
  const { store, data } = app;
  const state = store.state;
  const run = select("Run", run_choices(app), String(state.run), (value) => choose_run(app, Number(value)));
  const source = select("Measured on", [], "", (value) => store.set({ source: value }));
  const metric = select("Metric", [], "", (value) => store.set({ metric: value }));
  const mode = select("Colour", [], "", (value) => store.set({ mode: value as Mode }));
  const other = select("Other run", run_choices(app), String(state.other), (value) => store.set({ other: Number(value) }));
  metric.input.id = "metric";
  mode.input.id = "mode";
  const meaning = element("p", { class: "meaning" });
  const update = () => {
    const now = store.state;
    fill(source.input, data.run(now).sources.map((one) => ({ value: one.name, text: one.name })), now.source);
    fill(metric.input, metric_choices(app, now), now.metric);
    fill(mode.input, mode_choices(app, now), now.mode);
    run.input.value = String(now.run);
    other.input.value = String(now.other);
    const chosen = data.metric(now.metric);
    meaning.textContent = `${chosen.meaning}${chosen.unit ? ` (${chosen.unit})` : ""}`;
    source.box.hidden = data.run(now).sources.length < 2;
    other.box.hidden = now.mode !== "run" || data.index.runs.length < 3;
  };
  if (data.index.runs.length > 1) place.append(run.box);
  place.append(source.box, metric.box, meaning, mode.box, other.box, find_box(app), pins_box(app));
  store.on(["run", "source", "metric", "mode", "other"], update);
  update();
}

function choose_run(app: App, run: number): void {
  const { store, data } = app;
  const chosen = data.index.runs[run];
  const inside = store.state.pinned.filter((pin) => pin.layer < chosen.layers && pin.head < chosen.heads.q);
  const source = data.tracked(chosen, store.state.source)?.name ?? "";
  const metric = data.has(chosen, source, store.state.metric) ? store.state.metric : data.tracked(chosen, source)?.series[0]?.metric ?? "";
  store.set({ run, source, metric, pinned: inside, hover: null, other: other_of(data.index.runs, run, store.state.other) });
}

// Rows that C++ wrote are of the first run that has tracks. A click on one shows that run.
export function pin_row(app: App, head: Head): void {
  const { store, data } = app, first = first_tracked(data.index.runs), same = store.state.run === first;
  if (!same) choose_run(app, first);
  if (same || !is_pinned(store.state.pinned, head)) store.pin(head);
}

function find_box(app: App): HTMLElement {
  const input = element("input", { id: "find", type: "text", placeholder: "L3H1", size: 6, autocomplete: "off", spellcheck: "false" });
  const pin = () => {
    const head = parse_head(input.value), run = app.data.run();
    const there = head && head.layer < run.layers && head.head < run.heads.q;
    input.setAttribute("aria-invalid", String(!there && input.value !== ""));
    if (!head || !there) {
      if (input.value) problem("find", `There is no head “${input.value}”: there are ${run.layers} layers of ${run.heads.q} query heads, such as L0H1.`);
      return;
    }
    problem("find", "");
    if (!is_pinned(app.store.state.pinned, head)) app.store.pin(head);
    app.store.set({ hover: head });
    input.value = "";
  };
  input.addEventListener("keydown", (event) => {
    if (event.key === "Enter") pin();
    if (event.key === "Escape") input.blur();
  });
  return element("label", { class: "field" }, element("span", {}, "Find head"), input);
}

function pins_box(app: App): HTMLElement {
  const box = element("div", { class: "pins", role: "group", "aria-label": "Pinned heads" });
  const update = () => {
    box.replaceChildren(...app.store.state.pinned.map((pin) => {
      const chip = button("", () => app.store.pin(pin), { class: "chip", "aria-label": `Unpin ${head_name(pin)}` });
      chip.append(swatch(`var(--category-${pin.slot})`), head_name(pin), element("span", { class: "cross", "aria-hidden": "true" }, "×"));
      return chip;
    }));
    if (app.store.state.pinned.length > 1) box.append(button("Clear", () => app.store.set({ pinned: [] }), { class: "quiet" }));
    box.hidden = app.store.state.pinned.length === 0;
  };
  app.store.on(["pinned"], update);
  update();
  return box;
}

// Two thumbs over one track, and a button that moves the window through the run.
function add_steps(app: App, place: HTMLElement): void {
  const { store, data } = app;
  const low = element("input", { type: "range", min: 0, step: 1, "aria-label": "First step", id: "from" });
  const high = element("input", { type: "range", min: 0, step: 1, "aria-label": "Last step", id: "to" });
  const chosen = element("span", { class: "chosen", "aria-hidden": "true" });
  const slider = element("div", { class: "slider" }, element("span", { class: "track", "aria-hidden": "true" }), chosen, low, high);
  const words = element("output", { class: "steps" });
  const steps = () => data.tracked(data.run(), store.state.source)?.step ?? [0];
  const given = () => {
    const list = steps();
    const [a, b] = [Number(low.value), Number(high.value)].sort((x, y) => x - y);
    store.set({ brush: [list[a], list[b]] });
  };
  low.addEventListener("input", given);
  high.addEventListener("input", given);
  const reset = button("Last moment", () => store.set({ brush: null }), { class: "quiet", id: "reset" });
  const whole = button("All", () => store.set({ brush: [steps()[0], steps()[steps().length - 1]] }), { class: "quiet" });
  const play = play_button(app, steps);
  const update = () => {
    const list = steps(), last = list.length - 1;
    const { first, last: end } = moments_of(list, store.state.brush);
    low.max = high.max = String(last);
    low.value = String(first);
    high.value = String(end);
    for (const [input, at] of [[low, first], [high, end]] as [HTMLInputElement, number][]) input.setAttribute("aria-valuetext", `step ${list[at]}`);
    chosen.style.left = `${(100 * first) / Math.max(1, last)}%`;
    chosen.style.right = `${100 - (100 * end) / Math.max(1, last)}%`;
    const many = end - first + 1;
    words.textContent = !store.state.brush ? `last moment: step ${count(list[last])}`
      : many === 1 ? `step ${count(list[first])}` : `steps ${count(list[first])} – ${count(list[end])}: mean of ${many} moments`;
    reset.disabled = !store.state.brush;
  };
  if (steps().length > 1) place.append(element("div", { class: "step-row" }, play, slider, words, whole, reset));
  store.on(["brush", "run", "source"], update);
  update();
}

function play_button(app: App, steps: () => number[]): HTMLButtonElement {
  const { store } = app;
  let timer = 0;
  const stop = () => {
    window.clearInterval(timer);
    timer = 0;
    play.textContent = "▶ Play";
    play.setAttribute("aria-pressed", "false");
  };
  const move = () => {
    const list = steps();
    const { first, last } = moments_of(list, store.state.brush);
    if (last >= list.length - 1) return stop();
    const by = Math.max(1, Math.round(list.length / 150));
    const end = Math.min(list.length - 1, last + by);
    store.set({ brush: [list[first + end - last], list[end]] });
  };
  const play = button("▶ Play", () => {
    if (timer) return stop();
    const list = steps();
    const { first, last } = moments_of(list, store.state.brush);
    if (!store.state.brush || last >= list.length - 1) {
      const width = store.state.brush && first > 0 ? last - first : 0;
      store.set({ brush: [list[0], list[width]], fit: "run" });
    }
    play.textContent = "❚❚ Pause";
    play.setAttribute("aria-pressed", "true");
    // Those who asked for less motion get a change a second.
    timer = window.setInterval(move, window.matchMedia("(prefers-reduced-motion: reduce)").matches ? 1000 : 70);
  }, { class: "play", "aria-pressed": "false" });
  return play;
}

// What is known about the head under the pointer or the arrows, in words.
export function head_words(app: App, head: Head): string {
  const { data, store } = app;
  const state = store.state, run = data.run(state);
  const field = data.field(run, state.metric, state.mode, state);
  const parts: string[] = [];
  if (field) {
    const value = field.values[place_of(run, field.heads, head.layer, head.head)];
    const own = Array.from(field.values.subarray(head.layer * field.heads, (head.layer + 1) * field.heads)).filter(Number.isFinite);
    const mean = own.reduce((sum, one) => sum + one, 0) / own.length;
    parts.push(`${state.metric} ${field.diverging ? signed(value) : number(value)}${state.mode === "value" ? "" : ` (${mode_names[state.mode]})`}`);
    if (!field.diverging && own.length > 1) parts.push(`layer mean ${number(mean)}`);
    if (field.heads !== run.heads.q) parts.push(`key head ${key_head(head.head, field.heads, run.heads.q)}`);
  }
  const role = role_of(data.index.roles, score_of(run, head));
  if (role) parts.push(role.text);
  return `${head_name(head)}: ${parts.join(" · ")}`;
}

function add_readout(app: App, place: HTMLElement): void {
  const readout = element("p", { class: "readout", id: "readout" });
  place.append(readout);
  const hint = window.innerWidth < 700 ? "Tap a head to read it here; tap again to unpin." : "Point at a head, or walk the map with arrows. Click or Enter pins, Esc clears, [ ] change the metric, / finds a head.";
  const update = () => {
    const { hover, step } = app.store.state;
    if (!hover) {
      readout.textContent = hint;
      return;
    }
    let text = head_words(app, hover);
    const track = app.data.current();
    if (step !== null && track) {
      const at = track.step.indexOf(step);
      if (at >= 0) {
        const value = track.values[place_of(track.run, track.heads, hover.layer, hover.head) * track.moments + at];
        text += ` · at step ${count(step)} (${tokens(track.tokens[at])} tokens): ${number(value)}`;
      }
    }
    readout.textContent = text;
  };
  app.store.on(["hover", "metric", "mode", "brush", "run", "source", "data", "step", "other"], update);
  update();
}

// Whether a key is text, or belongs to what has the focus.
export function typing(event: KeyboardEvent): boolean {
  return event.ctrlKey || event.metaKey || event.altKey || (event.target as HTMLElement).matches("select, textarea, input[type=text], input[type=search]");
}

function add_keys(app: App): void {
  document.addEventListener("keydown", (event) => {
    if (typing(event)) return;
    const names = metric_choices(app, app.store.state).map((choice) => choice.value);
    const at = names.indexOf(app.store.state.metric);
    if (event.key === "[" || event.key === "]") {
      const metric = names[(at + (event.key === "]" ? 1 : names.length - 1)) % names.length];
      app.store.set({ metric });
      app.say(`${metric}: ${app.data.metric(metric).meaning}`);
    } else if (event.key === "/") document.getElementById("find")!.focus();      // scrolls to it
    else if (event.key === "Escape") {
      app.store.set({ pinned: [], brush: null, hover: null });
      problem("link", "");
    }
    else return;
    event.preventDefault();
  });
}
