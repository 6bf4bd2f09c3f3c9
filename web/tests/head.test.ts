// Names of heads, and which key head a query head reads.
import { strict as assert } from "node:assert";
import { test } from "node:test";
import { head_name, key_head, parse_head, query_head } from "../head";

test("Head_IsReadInTheFormsThatThePageWrites", () => {
  for (const text of ["12.3", "L12H3", "l12h3", "q12.3", " 12 3 ", "12, 3", head_name({ layer: 12, head: 3 })]) assert.deepEqual(parse_head(text), { layer: 12, head: 3 }, text);
  for (const text of ["", "12", "k12.3", "L12H", "12.3.4", "-1.2", "x"]) assert.equal(parse_head(text), null, text);
});

test("KeyHead_IsReadByAGroupOfQueryHeads", () => {
  assert.deepEqual([0, 1, 2, 3, 4, 5, 6, 7].map((head) => key_head(head, 2, 8)), [0, 0, 0, 0, 1, 1, 1, 1]);
  assert.deepEqual([0, 1, 2].map((head) => query_head(head, 3, 9)), [0, 3, 6]);
  assert.equal(key_head(5, 8, 8), 5);
});
