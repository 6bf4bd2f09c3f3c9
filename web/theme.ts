// Colours of the page. They come with the index; this file gives them to the style sheet and to the canvases.
import { contrast, mix, Ramp } from "./scale";
import { Theme } from "./source";

export interface Colours extends Theme { soft: string; lines: string[]; sequence: Ramp; divergence: Ramp; dark: boolean }

const made = new Map<Theme, Colours>();
export function colours(theme: Theme, dark: boolean): Colours {
  let found = made.get(theme);
  if (!found) {
    // Yellow is too pale for a line on white.
    const lines = theme.categories.filter((colour) => contrast(colour, theme.paper) >= 1.5);
    // "muted" is too pale for text (3.2 : 1 on paper): "soft" is for text.
    found = { ...theme, soft: mix(theme.ink, theme.muted, 0.45), lines, sequence: new Ramp(theme.sequential), divergence: new Ramp(theme.diverging), dark };
    made.set(theme, found);
  }
  return found;
}

// A pinned head has one colour everywhere; the head under the pointer has the colour of the ink.
export function head_colour(theme: Colours, head: { slot?: number }): string {
  return head.slot === undefined ? theme.ink : theme.categories[head.slot];
}

// The i-th of many things. When the colours are used up they begin again with another dash and another shape of the dots.
export interface Look { colour: string; dash: number[]; sides: number }
export function look(theme: Colours, i: number): Look {
  const round = Math.floor(i / theme.lines.length);
  const dash = round ? [7, 3.5, ...Array.from({ length: 2 * (round - 1) }, (_, k) => (k % 2 ? 3.5 : 2))] : [];
  return { colour: theme.lines[i % theme.lines.length], dash, sides: round ? round + 2 : 0 };
}

export function apply_theme(theme: Colours): void {
  const root = document.documentElement;
  root.dataset.theme = theme.dark ? "dark" : "light";
  for (const name of ["paper", "ink", "muted", "grid", "absent", "soft"] as const) root.style.setProperty(`--${name}`, theme[name]);
  root.style.setProperty("--panel", mix(theme.paper, theme.grid, 0.35));
  root.style.setProperty("--line", mix(theme.grid, theme.muted, 0.35));
  root.style.setProperty("--control", mix(theme.paper, theme.soft, theme.dark ? 0.75 : 0.8));
  const accent = theme.categories[0];
  root.style.setProperty("--accent", contrast(accent, theme.paper) >= 4.5 ? accent : mix(accent, theme.ink, 0.4));
  theme.categories.forEach((colour, i) => root.style.setProperty(`--category-${i}`, colour));
}
