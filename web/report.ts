// The page of a report: reads the index that the page holds and draws its views.
import { scaleLinear } from "d3-scale";

console.debug(scaleLinear().domain([0, 1]).ticks(3));
