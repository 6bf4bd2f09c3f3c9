// Start of the page: reads the index, makes the store from the URL's fragment and fills the views.
import { App } from "./app";
import { Data, first_tracked, other_of, two_metrics } from "./data";
import { element, view } from "./dom";
import { write_fragment } from "./fragment";
import { embedded, Source } from "./source";
import { State, Store } from "./state";
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

function first_state(source: Source): State {
  const { runs } = source.index, run = first_tracked(runs);
  const tracked = runs[run]?.sources[0];
  const metrics = tracked?.series.map((series) => series.metric) ?? [];
  const choose = (...names: string[]) => names.find((name) => metrics.includes(name)) ?? metrics[0] ?? "";
  const [x, y] = two_metrics(metrics);
  return {
    run, other: other_of(runs, run, 1), source: tracked?.name ?? "", metric: choose("k_norm", "entropy"), mode: "value", fit: "shown", brush: null, pinned: [], hover: null, step: null,
    x, y, colour: "depth", order: "layer", time: "linear", theme: prefers_dark() ? "dark" : "light", data: 0,
  };
}

// The fragment follows the state, not more often than browsers allow.
function follow_fragment(app: App): void {
  let timer = 0, written = "";
  app.store.on(["metric", "pinned", "brush", "run", "other", "mode", "x", "y", "time", "source"], () => {
    window.clearTimeout(timer);
    timer = window.setTimeout(() => {
      written = write_fragment(app.store.state, app.data.run().sources[0]?.name, first_tracked(app.data.index.runs));
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
    const { source, metric, other, x, y, pinned } = store.state, run = data.run(), against = data.index.runs[other];
    if (!run) return;
    if (against) data.track(against, source, metric);
    data.index.runs.forEach((one) => data.block(one.steps?.block ?? null));
    for (const name of pinned.length ? data.tracked(run, source)?.series.map((series) => series.metric) ?? [] : [x, y]) data.track(run, source, name);
    for (const block of [run.roles?.of_head?.block, pinned.length ? run.gains?.block : undefined]) if (block) data.block(block);
    if (pinned.length) run.attention?.blocks[0]?.forEach((block, i) => {
      if (pinned.some((pin) => pin.layer === run.attention!.heads[i][0])) data.block(block);
    });
  };
  const later = () => {
    window.clearTimeout(timer);
    timer = window.setTimeout(ask, 400);
  };
  store.on(["run", "other", "source", "metric", "pinned", "x", "y"], later);
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
