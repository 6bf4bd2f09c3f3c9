// Examples of a head: pieces of text where it attends strongly, its query outlined, the key underlined, all keys shaded.
import { App } from "../app";
import { element } from "../dom";
import { visible } from "../draw/tokens";
import { mix, number, text_on } from "../scale";
import { Example, Run } from "../source";
import { Pin } from "../state";

const shown_at_first = 8;

// Some of all, from the strongest to the weakest: the examples come in this order.
function spread(all: Example[]): Example[] {
  if (all.length <= shown_at_first) return all;
  return Array.from({ length: shown_at_first }, (_, i) => all[Math.round((i * (all.length - 1)) / (shown_at_first - 1))]);
}

export function examples(app: App, run: Run, pin: Pin): { box: HTMLElement; draw: () => void } | null {
  const block = run.examples?.blocks[String(pin.layer)];
  if (!block) return null;
  const list = element("div", { class: "examples" });
  const box = element("details", { class: "tests", open: true }, element("summary", {}, "Examples: the query has a frame, its key a line below. Strength: the largest weight outside the first token; quantile: the share of all places that are not stronger. Shades are those of one example: its darkest token is its strongest"), list);
  let drawn = "";
  const draw = () => {
    const bytes = app.data.block(block);
    if (!bytes || drawn === app.store.state.theme) return;
    drawn = app.store.state.theme;
    const own = (JSON.parse(new TextDecoder().decode(bytes)) as Example[]).filter((example) => example.head === pin.head);
    const show = (some: Example[]) => list.replaceChildren(...some.map((example) => one(app, pin, example)));
    const some = spread(own);
    show(some);
    if (some.length < own.length) {
      const more = element("button", { type: "button" }, `Show all ${own.length}`);
      more.addEventListener("click", () => show(own));
      list.append(more);
    }
    box.hidden = own.length === 0;
  };
  draw();
  return { box, draw };
}

function one(app: App, pin: Pin, example: Example): HTMLElement {
  const theme = app.theme(), most = Math.max(1, ...example.weights);
  const words = example.pieces.map((piece, i) => {
    const share = (example.weights[i] ?? 0) / most;      // bytes hold the square root of the weight: right for shades
    const colour = mix(theme.paper, theme.categories[pin.slot], share);
    const span = element("span", { class: i === example.query_at ? "token chosen" : i === example.key_at ? "token key-token" : "token" }, visible(piece));
    span.style.backgroundColor = colour;
    span.style.color = text_on(colour);
    return span;
  });
  const facts = [example.quantile === null ? "" : `quantile ${number(example.quantile, 3)}`, example.strength === null ? "" : `strength ${number(example.strength, 3)}`,
                 example.key_at === null ? "its key is not among these tokens" : "", example.document === null ? "" : `document ${example.document}`].filter(Boolean).join(" · ");
  return element("p", { class: "example" }, ...words, element("span", { class: "note" }, facts));
}
