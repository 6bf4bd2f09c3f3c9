// The theme button, the buttons of the answers, and what print needs.
import { App } from "../app";
import { redraw_all } from "../draw/surface";
import { element, link, problem, sideways } from "../dom";
import { read_fragment } from "../fragment";
import { State } from "../state";
import { apply_theme } from "../theme";

export function prefers_dark(): boolean {
  return window.matchMedia("(prefers-color-scheme: dark)").matches;
}

export function header(app: App): void {
  const { store } = app;
  const theme = document.getElementById("theme");
  const update = () => {
    apply_theme(app.theme());
    if (theme) theme.textContent = store.state.theme === "dark" ? "Light theme" : "Dark theme";
  };
  theme?.addEventListener("click", () => {
    store.set({ theme: store.state.theme === "dark" ? "light" : "dark" });
    store.tell();
  });
  window.matchMedia("(prefers-color-scheme: dark)").addEventListener("change", (event) => store.set({ theme: event.matches ? "dark" : "light" }));
  store.on(["theme"], update);
  update();
  answers(app);
  sections();
  scrollable();
  print(app);
}

// What scrolls can be reached by the keyboard.
function scrollable(): void {
  document.querySelectorAll<HTMLElement>(".frame, pre").forEach((box) => {
    box.after(sideways(box));
    if (box.hasAttribute("tabindex")) return;
    box.tabIndex = 0;
    box.setAttribute("role", "group");
    box.setAttribute("aria-label", box.querySelector("caption")?.textContent ?? box.closest("section")?.querySelector("h2")?.textContent ?? "Text");
  });
}

function sections(): void {
  const places = Array.from(document.querySelectorAll<HTMLElement>("main > section > h2"));
  if (places.length < 2) return;
  document.querySelector("header")?.append(element("nav", { "aria-label": "Sections" }, ...places.map((title) => {
    title.tabIndex = -1;
    return link(title.textContent ?? "", () => title);
  })));
}

function answers(app: App): void {
  document.querySelectorAll<HTMLElement>("[data-go]").forEach((button) => {
    button.addEventListener("click", () => {
      go(app, button.dataset.go ?? "");
      document.getElementById("heads")?.scrollIntoView({ behavior: window.matchMedia("(prefers-reduced-motion: reduce)").matches ? "auto" : "smooth" });
    });
  });
}

// Applies a fragment, as far as the page has what it names. A line says what it has not.
export function go(app: App, fragment: string): void {
  const { change, problems } = read_fragment(fragment, app.data.index, app.store.state);
  app.store.set(change);
  problem("link", problems.length ? `This link names ${problems.join("; ")}.` : "");
}

// Print is light, with everything open, on canvases of a higher resolution.
function print(app: App): void {
  let before: State["theme"] | null = null;
  let closed: HTMLDetailsElement[] = [];
  window.addEventListener("beforeprint", () => {
    before = app.store.state.theme;
    closed = Array.from(document.querySelectorAll<HTMLDetailsElement>("details:not([open])"));
    closed.forEach((one) => (one.open = true));
    app.store.set({ theme: "light" });
    app.store.tell();
    redraw_all(true);
  });
  window.addEventListener("afterprint", () => {
    closed.forEach((one) => (one.open = false));
    if (before) app.store.set({ theme: before });
    app.store.tell();
    redraw_all(false);
  });
}
