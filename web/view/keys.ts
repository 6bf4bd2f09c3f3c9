// Keys of colours: what a colour, a dash or a shape stands for.
import { App } from "../app";
import { third } from "../data";
import { element, swatch } from "../dom";
import { shape } from "../draw/scatter";
import { Look, look } from "../theme";

// The list follows the run and the theme. `ends` gets what ends that, where the list does not stay.
export function key_of(app: App, items: () => HTMLElement[], ends?: (() => void)[]): HTMLElement {
  const list = element("ul", { class: "key" });
  const update = () => list.replaceChildren(...items());
  const off = app.store.on(["theme", "run", "colour"], update);
  ends?.push(off);
  update();
  return list;
}

// Line and dot, or one of them.
export function mark(app: App, { colour, dash, sides }: Look, line: boolean, dot: boolean): SVGElement {
  const make = (tag: string, attributes: { [name: string]: string | number }) => {
    const made = document.createElementNS("http://www.w3.org/2000/svg", tag);
    for (const [name, value] of Object.entries(attributes)) made.setAttribute(name, String(value));
    return made;
  };
  const made = make("svg", { width: line ? 30 : 12, height: 12, "aria-hidden": "true" });
  if (line) made.append(make("path", { d: "M1 6H29", stroke: colour, "stroke-width": 2.5, "stroke-dasharray": dash.join(" ") }));
  if (dot) made.append(make("path", { d: shape(sides, line ? 15 : 6, 6, 5), fill: colour, stroke: app.theme().paper }));
  return made;
}
export function line_key(app: App, names: string[], dots = false, ends?: (() => void)[]): HTMLElement {
  return key_of(app, () => names.map((name, i) => element("li", {}, mark(app, look(app.theme(), i), true, dots), name)), ends);
}

// Roles as areas, which carry their letters, and as dots, which have shapes.
export function role_look(app: App, role: number): Look {
  return app.data.index.roles[role] ? look(app.theme(), role) : { colour: app.theme().muted, dash: [], sides: 0 };
}
export function role_items(app: App, mark: (role: number) => Element): HTMLElement[] {
  return [...app.data.index.roles, { letter: "", text: "no role" }].map((role, i) => element("li", {}, mark(i), element("b", {}, role.letter), ` ${role.text}`));
}
// The thirds of the layers.
export function depth_items(app: App, form = "line"): HTMLElement[] {
  const { layers } = app.data.run();
  return [0, 1, 2].flatMap((part) => {
    const own = Array.from({ length: layers }, (_, layer) => layer).filter((layer) => third(layer, layers) === part);
    return own.length ? [element("li", {}, swatch(app.theme().depth[part], form), own.length > 1 ? `layers ${own[0]}–${own[own.length - 1]}` : `layer ${own[0]}`)] : [];
  });
}
