// Start of the page: reads the index, makes the store from the URL's fragment and fills the views.
import { App } from "./app";
import { corresponds, Data } from "./data";
import { element, view } from "./dom";
import { embedded, Run, Source } from "./source";
import { is_pinned, State, Store, write_fragment } from "./state";
import { colours } from "./theme";
import { card } from "./view/card";
import { compare } from "./view/compare";
import { controls } from "./view/controls";
import { go, header, prefers_dark } from "./view/header";
import { heads } from "./view/heads";
import { loss } from "./view/loss";
import { plasticity } from "./view/plasticity";
import { surgery } from "./view/surgery";
import { time } from "./view/time";

// What the first run is compared with: a run whose heads correspond, if there is one.
function other_run(runs: Run[]): number {
  const found = runs.findIndex((run, i) => i > 0 && corresponds(runs[0], run));
  return found > 0 ? found : 1;
}

function first_state(source: Source): State {
  const run = source.index.runs[0];
  const tracked = run?.sources[0];
  const has = (name: string) => tracked?.series.some((series) => series.metric === name);
  const metrics = tracked?.series.map((series) => series.metric) ?? [];
  const choose = (...names: string[]) => names.find(has) ?? metrics[0] ?? "";
  const x = choose("sink", "k_norm");
  return {
    run: 0, other: other_run(source.index.runs), source: tracked?.name ?? "", metric: choose("k_norm", "entropy"), mode: "value", fit: "shown", brush: null, pinned: [], hover: null, step: null,
    x, y: choose("entropy", "q_norm", ...metrics.filter((name) => name !== x)), colour: "depth", order: "layer", time: "linear", theme: prefers_dark() ? "dark" : "light", data: 0,
  };
}

// The fragment follows the state, not more often than browsers allow.
function follow_fragment(app: App): void {
  let timer = 0, written = "";
  app.store.on(["metric", "pinned", "brush", "run", "other", "mode", "x", "y", "time", "source"], () => {
    window.clearTimeout(timer);
    timer = window.setTimeout(() => {
      written = write_fragment(app.store.state, app.data.run().sources[0]?.name);
      history.replaceState(null, "", written);
    }, 250);
  });
  window.addEventListener("hashchange", () => {
    if (location.hash !== written && location.hash.includes("=")) go(app, location.hash);
  });
}

// Sections about one run name it, where there are several.
function name_run(app: App): void {
  const update = () => document.querySelectorAll(".of-run").forEach((place) => (place.textContent = ` — ${app.data.run().label}`));
  app.store.on(["run"], update);
  update();
}

// Print draws at once what was never in view: its blocks must be there before.
function decode_ahead(app: App): void {
  const { data, store } = app;
  let timer = 0;
  const ask = () => {
    const { source, x, y, pinned } = store.state, run = data.run();
    if (!run) return;
    for (const name of pinned.length ? data.tracked(run, source)?.series.map((series) => series.metric) ?? [] : [x, y]) data.track(run, source, name);
    for (const block of [run.roles?.of_head?.block, run.steps?.block, pinned.length ? run.gains?.block : undefined]) if (block) data.block(block);
    if (pinned.length) run.attention?.blocks[0]?.forEach((block, i) => {
      const [layer, head] = run.attention!.heads[i];
      if (is_pinned(pinned, { layer, head })) data.block(block);
    });
  };
  const later = () => {
    window.clearTimeout(timer);
    timer = window.setTimeout(ask, 400);
  };
  store.on(["run", "source", "pinned", "x", "y"], later);
  later();
}

// A run of attention alone has no map to choose from: its first heads are open.
function pin_what_has_attention(app: App): void {
  const run = app.data.run();
  if (!run?.attention || run.sources.length > 0 || app.store.state.pinned.length > 0) return;
  run.attention.heads.slice(0, 2).forEach(([layer, head]) => app.store.pin({ layer, head }));
}

function start(source: Source): void {
  const store = new Store(first_state(source));
  const spoken = element("div", { class: "unseen", role: "status", "aria-live": "polite", id: "spoken" });
  document.body.append(spoken);
  const app: App = {
    data: new Data(source, store), store,
    theme: () => colours(source.index.themes[store.state.theme], store.state.theme === "dark"),
    say: (text) => (spoken.textContent = text),
  };
  if (location.hash.includes("=")) {
    go(app, location.hash);
    store.tell();
  }
  header(app);
  if (source.index.runs.some((run) => run.sources.length > 0)) {
    controls(app);
    heads(app);
    time(app);
  }
  pin_what_has_attention(app);
  card(app);
  plasticity(app);
  surgery(app);
  loss(app);
  compare(app);
  name_run(app);
  follow_fragment(app);
  decode_ahead(app);
  document.documentElement.dataset.ready = "yes";
}

const source = embedded();
if (source && source.index.format === 1) start(source);
else if (source) view("controls")?.append(element("p", {}, `This page has format ${source.index.format}; its program knows format 1.`));
