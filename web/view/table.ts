// The table of heads: exact values, sorting, filter, copy.
import { App } from "../app";
import { first_tracked, place_of } from "../data";
import { button, element } from "../dom";
import { Head, parse_head } from "../head";
import { number } from "../scale";
import { is_pinned } from "../state";
import { mode_name, pin_row } from "./controls";

// Whether another run is shown than the one of which C++ wrote the tables.
function other_run(app: App): boolean {
  return app.store.state.run !== first_tracked(app.data.index.runs);
}

// A line above each of these tables, while another run is shown.
export function name_tables(app: App): void {
  const { runs } = app.data.index, notes: HTMLElement[] = [];
  if (runs.length < 2) return;
  document.querySelectorAll("p.nearest, table.nearest, table.heads, table.transitions").forEach((place) => {
    const note = element("p", { class: "note of-first" }, `This ${place.matches("p") ? "sentence" : "table"} is of ${runs[first_tracked(runs)].label}.`);
    (place.closest(".frame") ?? place).before(note);
    notes.push(note);
  });
  const update = () => notes.forEach((note) => (note.hidden = !other_run(app)));
  app.store.on(["run"], update);
  update();
}

// The table of C++ gains a column of the metric shown, sorting, a filter and a copy as CSV.
export function table(app: App): void {
  const found = document.querySelector<HTMLTableElement>("table.heads");
  if (!found || !found.tHead || !found.tBodies[0]) return;
  const body = found.tBodies[0], header = found.tHead.rows[0];
  const rows = Array.from(body.rows);
  const names = Array.from(header.cells, (cell) => (cell.textContent ?? "").trim()).concat("shown");
  // The header stays the same text: another would lay out the whole table again. The line above names the metric.
  header.append(element("th", { scope: "col" }, "shown"));
  const column = new Column(app, found, rows);
  const copy = button("Copy CSV", () => {
    column.finish();
    copy_csv(found, column.text(), copy);
  });
  const tools = element("div", { class: "tools table-tools" }, ...filter_box(rows, names, () => column.finish()), copy, column.name);
  (found.closest(".frame") ?? found).before(tools);
  body.addEventListener("click", (event) => {
    const row = (event.target as HTMLElement).closest("tr");
    const head = row && head_of(row);
    if (head) pin_row(app, head);
  });
  Array.from(header.cells).forEach((cell, i) => sortable(cell, i, rows, body, () => column.finish()));
  window.addEventListener("beforeprint", () => column.finish());
  app.store.on(["pinned"], () => mark_rows(app, rows));
  mark_rows(app, rows);
}

function filter_box(rows: HTMLTableRowElement[], names: string[], before: () => void): HTMLElement[] {
  const example = `layer>=2 ${names.includes("role") ? "role=sink" : `${names[1]}>0`}`;
  const input = element("input", { type: "search", id: "filter", placeholder: example, size: 24, spellcheck: "false" });
  const told = element("span", { class: "note", role: "status" });
  input.addEventListener("input", () => {
    before();
    const tests = parse_filter(input.value), problem = tests.map((test) => problem_of(test, names)).find(Boolean);
    let kept = 0;
    for (const row of rows) {
      row.hidden = !problem && !tests.every((test) => passes(test, row, names));
      if (!row.hidden) ++kept;
    }
    input.setAttribute("aria-invalid", String(Boolean(problem)));
    told.textContent = problem ? `${problem} Example: ${example}` : input.value ? `${kept} of ${rows.length} heads` : "";
  });
  return [element("label", { class: "field" }, element("span", {}, "Filter"), input), told];
}

// The last column: what the map shows. It is filled when it is in view and the brush has come to rest.
class Column {
  readonly name = element("span", { class: "note" });
  private timer = 0;
  private seen = false;
  private stale = true;
  private work: Generator<void> | null = null;

  constructor(private app: App, found: HTMLTableElement, private rows: HTMLTableRowElement[]) {
    for (const row of rows) row.append(element("td", { class: "shown" }, element("span")));
    new IntersectionObserver((entries) => {
      this.seen = entries[entries.length - 1].isIntersecting;
      this.show();
    }).observe(found);
    app.store.on(["run", "source", "metric", "mode", "brush", "data"], () => this.update());
    this.update();
  }
  text(): string {
    const { metric, mode, brush } = this.app.store.state;
    return `${metric}${other_run(this.app) ? ` of ${this.app.data.run().label}` : ""}${brush ? ", chosen steps" : ""}${mode === "value" ? "" : `, ${mode_name(mode)}`}`;
  }
  // Before the table is sorted, filtered or copied, all of it must be there.
  finish(): void {
    if (this.stale) this.work = this.fill();
    this.stale = false;
    while (this.work && !this.work.next().done);
    this.work = null;
  }
  private update(): void {
    this.stale = true;
    this.name.textContent = `Column “shown”: ${this.text()}`;
    window.clearTimeout(this.timer);
    this.timer = window.setTimeout(() => this.show(), 120);
  }
  private show(): void {
    if (!this.seen || !this.stale) return;
    this.stale = false;
    const idle = this.work === null;
    this.work = this.fill();
    if (idle) requestAnimationFrame(() => this.go_on());
  }
  private go_on(): void {
    if (this.work && !this.work.next().done) requestAnimationFrame(() => this.go_on());
    else this.work = null;
  }
  // A hundred rows a frame: a thousand cells at once would hold up the page.
  private *fill(): Generator<void> {
    const { store, data } = this.app;
    const run = data.run(), field = data.field(run, store.state.metric, store.state.mode);
    for (const [i, row] of this.rows.entries()) {
      if (i % 100 === 99) yield;
      const head = head_of(row), cell = row.cells[row.cells.length - 1].firstChild!;
      const there = field && head && head.layer < run.layers && head.head < run.heads.q;
      cell.textContent = there ? number(field.values[place_of(run, field.heads, head.layer, head.head)]) : "";
    }
  }
}

function head_of(row: HTMLTableRowElement): Head | null {
  return parse_head(row.dataset.head ?? "");
}

function mark_rows(app: App, rows: HTMLTableRowElement[]): void {
  for (const row of rows) {
    const head = head_of(row), pin = head && is_pinned(app.store.state.pinned, head);
    if (Boolean(pin) !== row.classList.contains("pinned")) row.classList.toggle("pinned");
    if (pin) row.style.setProperty("--mark", `var(--category-${pin.slot})`);
  }
}

function cell_number(text: string): number {
  const value = text.trim().replace("−", "-").replace(/,/g, "");
  return value === "" ? NaN : Number(value);
}

function sortable(cell: HTMLTableCellElement, column: number, rows: HTMLTableRowElement[], body: HTMLElement, finish: () => void): void {
  const label = cell.textContent ?? "";
  const sort = button(label, () => {
    finish();
    const place = new Map(rows.map((row, i) => [row, i]));
    const key = (row: HTMLTableRowElement) => (column === 0 ? place.get(row)! : cell_number(row.cells[column].textContent ?? ""));
    const words = (row: HTMLTableRowElement) => row.cells[column].textContent ?? "";
    // Numbers begin with the largest, words with A.
    const before = cell.getAttribute("aria-sort"), down = before ? before === "ascending" : rows.some((row) => !Number.isNaN(key(row)));
    for (const other of Array.from(cell.parentElement!.children)) other.removeAttribute("aria-sort");
    cell.setAttribute("aria-sort", down ? "descending" : "ascending");
    const sorted = [...rows].sort((a, b) => {
      const [u, v] = [key(a), key(b)];
      if (Number.isNaN(u) !== Number.isNaN(v)) return Number.isNaN(u) ? 1 : -1;      // what is missing stays last
      const order = Number.isNaN(u) ? words(a).localeCompare(words(b)) : u - v;
      return down ? -order : order;
    });
    body.append(...sorted);
  }, { class: "sort" });
  cell.replaceChildren(sort);
}

interface Condition { name: string; sign: string; value: string }
// "layer>=16 role=sink" as conditions; a word alone must be somewhere in the row.
function parse_filter(text: string): Condition[] {
  return text.trim().split(/\s+/).filter(Boolean).map((part) => {
    const found = /^([^<>=!]*)(>=|<=|!=|=|>|<)(.*)$/.exec(part);
    return found ? { name: found[1].toLowerCase(), sign: found[2], value: found[3] } : { name: "", sign: "", value: part };
  });
}
// Why a condition cannot be read.
function problem_of({ name, sign, value }: Condition, names: string[]): string {
  const known = ["layer", ...names];
  if (!sign) return "";
  if (!known.some((one) => one.toLowerCase() === name)) return `“${name}” is not a column; columns are ${known.join(", ")}.`;
  if (!value) return `A value must follow “${name}${sign}”.`;
  return /[<>]/.test(sign) && !Number.isFinite(Number(value)) ? `A number must follow “${name}${sign}”, not “${value}”.` : "";
}

function passes(test: Condition, row: HTMLTableRowElement, names: string[]): boolean {
  const words = (text: string) => text.toLowerCase().replace(/[_\s]+/g, " ").trim();
  if (!test.sign) return words(row.textContent ?? "").includes(words(test.value));
  const head = head_of(row);
  const at = names.findIndex((name) => name.toLowerCase() === test.name);
  const text = test.name === "layer" ? String(head?.layer) : test.name === "head" && head ? String(head.head) : at >= 0 ? row.cells[at].textContent ?? "" : "";
  const value = cell_number(text), bound = Number(test.value);
  if (Number.isFinite(value) && Number.isFinite(bound)) {
    const results: { [sign: string]: boolean } = { ">=": value >= bound, "<=": value <= bound, ">": value > bound, "<": value < bound, "=": value === bound, "!=": value !== bound };
    return results[test.sign];
  }
  const inside = words(text).includes(words(test.value));
  return test.sign === "=" ? inside : test.sign === "!=" ? !inside : false;
}

function copy_csv(table: HTMLTableElement, shown: string, told: HTMLButtonElement): void {
  const quote = (text: string) => (/[",\n]/.test(text) ? `"${text.replace(/"/g, '""')}"` : text);
  const lines = Array.from(table.rows).filter((row) => !row.hidden)
    .map((row) => Array.from(row.cells, (cell) => quote((cell.textContent ?? "").trim().replace("−", "-"))).join(","));
  lines[0] = lines[0].replace(/shown$/, () => quote(shown));
  const say = (text: string) => {
    told.textContent = text;
    window.setTimeout(() => (told.textContent = "Copy CSV"), 1500);
  };
  const area = element("textarea", { readonly: true, class: "unseen", "aria-label": "CSV" });
  area.value = lines.join("\n") + "\n";
  document.body.append(area);
  area.select();
  const done = document.execCommand("copy");      // works from file:// in all browsers; the clipboard API does not
  area.remove();
  say(done ? "Copied" : "Not copied");
}
