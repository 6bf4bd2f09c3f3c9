// Examples of a head: pieces of text where it attends strongly, its query outlined, the key underlined, all keys shaded.
import { App } from "../app";
import { element } from "../dom";
import { visible } from "../draw/tokens";
import { mix, number, text_on } from "../scale";
import { Example, Run } from "../source";
import { Pin } from "../state";

const most_shown = 8;

export function examples(app: App, run: Run, pin: Pin): { box: HTMLElement; draw: () => void } | null {
  const block = run.examples?.blocks[String(pin.layer)];
  if (!block) return null;
  const list = element("div", { class: "examples" });
  const box = element("details", { class: "tests", open: true }, element("summary", {}, "Examples: the query has a frame, its key a line below, shade is attention"), list);
  let drawn = "";
  const draw = () => {
    const bytes = app.data.block(block);
    if (!bytes || drawn === app.store.state.theme) return;
    drawn = app.store.state.theme;
    const own = (JSON.parse(new TextDecoder().decode(bytes)) as Example[]).filter((example) => example.head === pin.head);
    list.replaceChildren(...own.slice(0, most_shown).map((example) => one(app, pin, example)));
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
                 example.document === null ? "" : `document ${example.document}`].filter(Boolean).join(" · ");
  return element("p", { class: "example" }, ...words, element("span", { class: "note" }, facts));
}
