// Elements of the page. Text always goes through textContent.

type Child = Node | string | null | undefined;
type Attributes = { [name: string]: string | number | boolean | ((event: Event) => void) | undefined };

export function element<K extends keyof HTMLElementTagNameMap>(tag: K, attributes: Attributes = {}, ...children: Child[]): HTMLElementTagNameMap[K] {
  const made = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (value === undefined || value === false) continue;
    if (typeof value === "function") made.addEventListener(name, value);
    else if (name === "class") made.className = String(value);
    else made.setAttribute(name, value === true ? "" : String(value));
  }
  made.append(...children.filter((child): child is Node | string => child !== null && child !== undefined));
  return made;
}

export function view(name: string): HTMLElement | null {
  return document.querySelector<HTMLElement>(`.view[data-view="${name}"]`);
}

// A link to a title. The fragment holds the view, so the link does not go through it.
export function link(text: string, title: () => HTMLElement | null): HTMLElement {
  return element("a", { href: "#", click: (event) => {
    event.preventDefault();
    title()?.focus({ preventScroll: true });
    title()?.scrollIntoView();
  } }, text);
}

export interface Choice { value: string; text: string; group?: string; disabled?: boolean }

// A labelled <select>; groups become <optgroup>.
export function select(label: string, choices: Choice[], value: string, change: (value: string) => void): { box: HTMLElement; input: HTMLSelectElement } {
  const input: HTMLSelectElement = element("select", { change: () => change(input.value) });
  fill(input, choices, value);
  return { box: element("label", { class: "field" }, element("span", {}, label), input), input };
}
export function fill(input: HTMLSelectElement, choices: Choice[], value: string): void {
  input.replaceChildren();
  let group: HTMLElement = input, name: string | undefined;
  for (const choice of choices) {
    if (choice.group !== name) {
      name = choice.group;
      group = name === undefined ? input : element("optgroup", { label: name });
      if (group !== input) input.append(group);
    }
    group.append(element("option", { value: choice.value, disabled: choice.disabled }, choice.text));
  }
  input.value = value;
}

// The mark of a colour in a key: a square, a "line" or a "dot".
export function swatch(colour: string, shape = ""): HTMLElement {
  const made = element("span", { class: `swatch ${shape}`, "aria-hidden": "true" });
  made.style.backgroundColor = colour;
  return made;
}

// The line below a box that says when the box scrolls sideways. The box fades where there is more.
export function sideways(box: HTMLElement): HTMLElement {
  const hint = element("p", { class: "hint", "aria-hidden": "true" }, "Scroll sideways for more →");
  const update = () => {
    hint.hidden = box.scrollWidth <= box.clientWidth + 1;
    box.classList.toggle("wide", box.scrollLeft + box.clientWidth < box.scrollWidth - 2);
  };
  const sizes = new ResizeObserver(update);
  for (const one of [box, ...Array.from(box.children)]) sizes.observe(one);
  box.addEventListener("scroll", update);
  update();
  return hint;
}

export function button(text: string, click: () => void, attributes: Attributes = {}): HTMLButtonElement {
  return element("button", { type: "button", click, ...attributes }, text);
}

// A line on top of the page about what is wrong. Another of its kind takes its place; no text takes it away.
export function problem(kind: string, text: string): void {
  document.querySelector(`.problem[data-kind="${kind}"]`)?.remove();
  if (!text) return;
  const line: HTMLElement = element("p", { class: "problem", role: "alert", "data-kind": kind }, `${text} `, button("Close", () => line.remove(), { class: "quiet" }));
  view("controls")?.prepend(line);
}

// A title, a line of explanation, a line that reads out what is under the pointer, and what follows.
interface Figure { box: HTMLElement; title: HTMLElement; note: HTMLElement; readout: HTMLElement; tools: HTMLElement; body: HTMLElement }
export function figure(title: string): Figure {
  const made: Figure = {
    title: element("h3", {}, title), note: element("p", { class: "note" }), readout: element("p", { class: "readout" }),
    tools: element("div", { class: "tools" }), body: element("div", { class: "body" }), box: element("div", { class: "figure" }),
  };
  made.box.append(element("div", { class: "figure-head" }, made.title, made.tools), made.note, made.body, made.readout);
  return made;
}
