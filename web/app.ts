// What every view gets.
import { Data } from "./data";
import { Store } from "./state";
import { Colours } from "./theme";

export interface App {
  data: Data;
  store: Store;
  theme: () => Colours;
  say: (text: string) => void;      // read out by screen readers
}
