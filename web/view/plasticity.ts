// Attention plasticity: the heads with intervals, the map query × key bucket of a head, and the differences of two measurements.
import { App } from "../app";
import { floats } from "../block";
import { element, figure, select, view } from "../dom";
import { rule, text, x_axis } from "../draw/axes";
import { ring } from "../draw/scatter";
import { Surface } from "../draw/surface";
import { head_name } from "../head";
import { axis, extent, number, Ramp, signed, text_on } from "../scale";
import { Run } from "../source";
import { third } from "../data";

interface Row { name: string; value: number | null; low: number | null; high: number | null; colour: number; strong: boolean }

export function plasticity(app: App): void {
  const place = view("cards") ?? document.querySelector<HTMLElement>("#compare");
  if (!place) return;
  for (const run of app.data.index.runs) {
    if (run.plasticity) measured(app, place, run);
    if (run.comparison) compared(app, place, run);
  }
}

function measured(app: App, place: HTMLElement, run: Run): void {
  const { heads, cells } = run.plasticity!;
  const layers = Math.max(...heads.layer) + 1;
  const rows = heads.layer.map((layer, i) => ({ name: head_name({ layer, head: heads.head[i] }), value: heads.ap[i], low: heads.low[i], high: heads.high[i], colour: third(layer, layers), strong: true }));
  const shown = figure("Plasticity of heads");
  shown.note.textContent = "Dots with 95 % intervals. 0: of two keys the same always wins; 1: over later queries it is a coin flip.";
  const columns = element("div", { class: "columns" }, shown.box);
  place.append(columns);
  forest(app, shown.body, rows, "plasticity", number, false);
  if (cells) columns.append(bucket_map(app, run));
}

function compared(app: App, place: HTMLElement, run: Run): void {
  const given = run.comparison!;
  const layers = Math.max(...given.layer) + 1;
  const rows = given.layer.map((layer, i) => ({ name: head_name({ layer, head: given.head[i] }), value: given.difference[i], low: given.low[i], high: given.high[i],
                                                colour: third(layer, layers), strong: Boolean(given.significant[i]) }));
  const shown = figure("Differences of plasticity");
  shown.note.textContent = `${given.names[1]} minus ${given.names[0]}, with 95 % intervals. Full dots: significant; empty dots: not.`;
  place.append(shown.box);
  forest(app, shown.body, rows, "difference", signed, true);
}

// A row for each head: dot and interval.
function forest(app: App, place: HTMLElement, rows: Row[], label: string, write: (value: number) => string, zero: boolean): void {
  const high = rows.length > 60 ? 9 : 20;
  const box = element("div", { class: "strip-frame" });
  place.append(box);
  const surface = new Surface(box, {
    label: `${label}, ${rows.length} heads with intervals. The table has the numbers.`, height: () => rows.length * high + 50,
    top: (c, width, height) => {
      const theme = app.theme(), area = { left: 58, top: 6, right: width - 14, bottom: height - 38 };
      const range = extent(rows.flatMap((row) => [row.value, row.low, row.high, zero ? 0 : NaN]).map((value) => value ?? NaN));
      const x = axis(range[0], range[1], [area.left + 8, area.right - 8]);
      x_axis(c, theme, area, x, label, write);
      if (zero) rule(c, x(0), area.top, x(0), area.bottom, theme.ink);
      rows.forEach((row, i) => {
        const y = area.top + (i + 0.5) * high;
        if (high > 12 || i % 4 === 0) text(c, row.name, area.left - 8, y, theme.soft, { align: "right", size: 11 });
        if (row.value === null) return;
        c.strokeStyle = theme.depth[row.colour];
        c.lineWidth = 2;
        if (row.low !== null && row.high !== null) {
          c.beginPath();
          c.moveTo(x(row.low), y);
          c.lineTo(x(row.high), y);
          c.stroke();
        }
        ring(c, theme, x(row.value), y, theme.depth[row.colour], high > 12 ? 6 : 4);
        if (!row.strong) ring(c, theme, x(row.value), y, theme.paper, 4);
      });
    },
  });
  app.store.on(["theme", "data"], () => surface.draw());
}

// Query bucket × key bucket of one head.
function bucket_map(app: App, run: Run): HTMLElement {
  const { cells, heads } = run.plasticity!;
  const shown = figure("Query bucket × key bucket");
  const names = heads.layer.map((layer, i) => ({ value: String(i), text: head_name({ layer, head: heads.head[i] }) }));
  let head = 0;
  shown.tools.append(select("Head", names, "0", (value) => {
    head = Number(value);
    surface.draw();
  }).box);
  shown.note.textContent = "Later queries are lower, earlier keys left. Each cell: plasticity ± standard error.";
  const surface = new Surface(shown.body, {
    label: "Plasticity by bucket of query and key", height: (width) => Math.min(width, 420) * 0.8 + 30,
    top: (c, width, height) => {
      const bytes = app.data.block(cells!.block), theme = app.theme();
      if (!bytes) return;
      const all = floats(bytes), column = (name: string) => all.subarray(cells!.columns.indexOf(name) * cells!.rows, (cells!.columns.indexOf(name) + 1) * cells!.rows);
      const [layer, place, query, key, value, error] = ["layer", "head", "q_bucket", "k_bucket", "value", "se"].map(column);
      const own = Array.from({ length: cells!.rows }, (_, i) => i).filter((i) => layer[i] === heads.layer[head] && place[i] === heads.head[head]);
      const n = Math.max(...own.map((i) => Math.max(query[i], key[i]))) + 1;
      const wide = Math.min(width - 40, 520) / n, high = (height - 30) / n, ramp: Ramp = theme.sequence;
      for (const i of own) {
        const colour = Number.isFinite(value[i]) ? ramp.texts[ramp.place(value[i])] : theme.absent;
        const x = 34 + key[i] * wide, y = 20 + query[i] * high;
        c.fillStyle = colour;
        c.fillRect(x, y, wide - 1, high - 1);
        if (wide < 44 || high < 22 || !Number.isFinite(value[i])) continue;
        text(c, number(value[i], 2), x + wide / 2, y + high / 2 - (high > 34 ? 6 : 0), text_on(colour), { align: "center", size: 11, weight: 600 });
        if (high > 34) text(c, `± ${number(error[i], 1)}`, x + wide / 2, y + high / 2 + 9, text_on(colour), { align: "center", size: 10 });
      }
      for (let i = 0; i < n; ++i) {
        text(c, `k${i}`, 34 + (i + 0.5) * wide, 10, theme.soft, { align: "center", size: 11 });
        text(c, `q${i}`, 28, 20 + (i + 0.5) * high, theme.soft, { align: "right", size: 11 });
      }
    },
  });
  app.store.on(["theme", "data"], () => surface.draw());
  return shown.box;
}
