// Codes of blocks: `node --test` on the bundle that tests/web/test_units.py makes.
import { strict as assert } from "node:assert";
import { test } from "node:test";
import { deflateSync } from "node:zlib";
import { decode, inflate, undo_differences, weight } from "../block";

// 12 bits, as src/page/README.md says: first code, then zigzag differences; low bytes, then high bytes.
function planes(codes: number[][]): Uint8Array {
  const words = codes.flatMap((row) => row.map((code, i) => {
    const difference = i ? code - row[i - 1] : code;
    return i === 0 ? code : difference >= 0 ? 2 * difference : -2 * difference - 1;
  }));
  return Uint8Array.from([...words.map((word) => word & 255), ...words.map((word) => word >> 8)]);
}

test("Differences_AreUndone", () => {
  const codes = [[0, 4094, 0, 4095, 1], [2047, 2046, 2048, 2048, 4095]];
  assert.deepEqual(Array.from(undo_differences(planes(codes), 12, 2, 5)), codes.flat());
});

test("EightBits_AreModulo256", () => {
  const codes = [3, 254, 0, 255, 7];
  const bytes = Uint8Array.from(codes.map((code, i) => (code - (i ? codes[i - 1] : 0) + 256) % 256));
  assert.deepEqual(Array.from(undo_differences(bytes, 8, 1, 5)), codes);
});

test("LastCode_IsMissing_EndsAreExact", () => {
  const values = decode(planes([[0, 4094, 4095]]), { codec: "d12", bits: 12, low: -1.5, high: 9.25, scale: "linear" }, 1, 3);
  assert.equal(values[0], -1.5);
  assert.equal(values[1], 9.25);
  assert.ok(Number.isNaN(values[2]));
});

test("LogScale_IsUndone", () => {
  const values = decode(planes([[0, 2047, 4094]]), { codec: "d12", bits: 12, low: Math.log(0.01), high: Math.log(100), scale: "log" }, 1, 3);
  [0.01, 1, 100].forEach((value, i) => assert.ok(Math.abs(values[i] / value - 1) < 1e-6));      // float32
});

test("ConstantSeries_HasItsValue", () => {
  const values = decode(planes([[0, 0]]), { codec: "d12", bits: 12, low: 3, high: 3, scale: "linear" }, 1, 2);
  assert.deepEqual(Array.from(values), [3, 3]);
});

test("DamagedBlock_IsRefused", () => {
  assert.throws(() => undo_differences(new Uint8Array(9), 12, 2, 5), /9 bytes, not 20/);
});

test("Inflate_UndoesZlibAndBase64", async () => {
  const bytes = Uint8Array.from({ length: 5000 }, (_, i) => (i * i) % 251);
  assert.deepEqual(await inflate(deflateSync(bytes).toString("base64")), bytes);
});

test("Weight_IsTheSquareOfTheByte", () => {
  const triangle = Uint8Array.from([255, 51, 204]);
  assert.equal(weight(triangle, 0, 0), 1);
  assert.ok(Math.abs(weight(triangle, 1, 0) - 0.04) < 1e-12);
  assert.ok(Math.abs(weight(triangle, 1, 1) - 0.64) < 1e-12);
});
