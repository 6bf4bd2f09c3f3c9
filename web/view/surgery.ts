// Surgery: the loss after parts of the keys are removed or rounded.
import { App } from "../app";
import { element, figure, view } from "../dom";
import { x_axis, y_axis } from "../draw/axes";
import { band, curve, level_lines } from "../draw/lines";
import { dots } from "../draw/scatter";
import { Surface } from "../draw/surface";
import { axis, extent, faded, number } from "../scale";
import { Change, Surgery } from "../source";
import { look } from "../theme";
import { line_key } from "./keys";

export function surgery(app: App): void {
  const place = view("cards");
  if (!place) return;
  for (const run of app.data.index.runs) {
    if (!run.surgery) continue;
    const columns = element("div", { class: "columns" });
    place.append(columns);
    const { remove, quantise } = run.surgery;
    if (remove) columns.append(plot(app, "Loss after removal", "share of dimensions removed", run.surgery, remove, (change) => change.share_removed));
    if (quantise) columns.append(plot(app, "Loss after rounding", "bits", run.surgery, quantise, (change) => change.bits));
  }
}

function plot(app: App, title: string, label: string, given: Surgery, ways: { [way: string]: Change[] }, at: (change: Change) => number | undefined): HTMLElement {
  const shown = figure(title);
  const names = Object.keys(ways);
  // Uniform attention is what removal ends in. Rounding stays far below it.
  const known: [string, number | null][] = [["unmodified", given.unmodified_loss]];
  if (ways === given.remove) known.push(["uniform attention", given.uniform_attention_loss]);
  const levels = known.flatMap(([name, value]) => (value === null || value === undefined ? [] : [{ value, text: `${name} ${number(value, 3)}` }]));
  const surface = new Surface(shown.body, {
    label: `${title}: ${names.join(", ")}. The table has the numbers.`, height: () => 300,
    top: (c, width, height) => {
      const theme = app.theme(), box = { left: 52, top: 12, right: width - 14, bottom: height - 40 };
      const all = names.flatMap((name) => ways[name]);
      const range = extent(all.map((change) => at(change) ?? NaN));
      const seen = extent([...all.flatMap((change) => [change.loss, change.highest ?? null, change.lowest ?? null]), ...levels.map((level) => level.value)]);
      const x = axis(range[0], range[1], [box.left + 6, box.right - 6]), y = axis(seen[0], seen[1], [box.bottom - 4, box.top + 8]);
      y_axis(c, theme, box, y);
      x_axis(c, theme, box, x, label, number);
      level_lines(c, theme, box, y, levels);
      names.forEach((name, i) => draw_way(c, app, ways[name], i, (change) => x(at(change) ?? 0), y));
    },
  });
  shown.box.append(line_key(app, names, true));
  app.store.on(["theme"], () => surface.draw());
  return shown.box;
}

function draw_way(c: CanvasRenderingContext2D, app: App, changes: Change[], i: number, x: (change: Change) => number, y: (value: number) => number): void {
  const { colour, dash, sides } = look(app.theme(), i), xs = Float64Array.from(changes, x), scale = y as Parameters<typeof curve>[4];
  const losses = changes.map((change) => change.loss ?? NaN);
  if (changes.some((change) => change.lowest !== undefined))
    band(c, xs, changes.map((change) => change.lowest ?? NaN), changes.map((change) => change.highest ?? NaN), scale, faded(colour, 0.18));
  c.strokeStyle = colour;
  c.lineWidth = 2;
  c.setLineDash(dash);
  c.beginPath();
  curve(c, xs, losses, 0, scale);
  c.stroke();
  c.setLineDash([]);
  dots(c, losses.flatMap((loss, k) => (Number.isFinite(loss) ? [{ x: xs[k], y: y(loss), colour, sides }] : [])), 3, 1);
}
