"""What `headscope inspect` writes of single heads: --text and --examples, against a forward pass in NumPy.

usage: python test_inspect_heads.py PATH_TO_HEADSCOPE [unittest options]
"""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as parquet

sys.path.insert(0, str(Path(__file__).resolve().parent))

import program  # noqa: E402
from llama_numpy import Llama  # noqa: E402
from program import HEADS, LAYERS, WRONG_USAGE, Program, files_of, differing, run, settings, setUpModule  # noqa: E402, F401

WORDS = ("A cat sat on the mat, and the dog on the log. ", "Ünïcödé 猫 — ", "one two one two three ")
# Weights are float32: errors of some eps in scores of size 10.
TOLERANCE = 3e-6


def lists(element: pa.DataType) -> pa.DataType:
    return pa.list_(pa.field("element", element, nullable=False))


INTEGER, NUMBER = pa.int64(), pa.float64()
ATTENTION = {"text": INTEGER, "layer": INTEGER, "head": INTEGER, "query": INTEGER, "weights": lists(pa.float32())}
TOKENS = {"text": INTEGER, "position": INTEGER, "id": INTEGER, "piece": pa.string()}
EXAMPLES = {"layer": INTEGER, "head": INTEGER, "quantile": NUMBER, "strength": NUMBER, "document": INTEGER, "sequence": INTEGER,
            "query": INTEGER, "key": INTEGER, "pieces": lists(pa.string()), "weights": lists(pa.float32()), "query_at": INTEGER,
            "key_at": INTEGER}


class Heads(Program):
    def setUp(self) -> None:
        super().setUp()
        shared = Path(os.environ.get("HEADSCOPE_SHARED", Path(__file__).resolve().parents[3] / "shared"))
        self.llama = shared / "reference/models/tiny/llama"
        self.out = self.folder / "out"
        self.text = self.folder / "text.txt"
        self.text.write_text("".join(WORDS))

    def table(self, name: str, columns: dict[str, pa.DataType]) -> list[dict]:
        table = parquet.read_table(self.out / name)
        self.assertEqual(dict(zip(table.schema.names, table.schema.types)), columns)
        return table.to_pylist()

    def refused(self, words: str, *arguments: object) -> None:
        done = run("inspect", *arguments, "--out", self.folder / "refused")
        self.assertEqual(done.returncode, WRONG_USAGE, done.stderr)
        self.assertIn(words, done.stderr)
        self.assertEqual(len(done.stderr.strip().splitlines()), 1, done.stderr)
        self.assertFalse((self.folder / "refused").exists())


class OfAPublishedModel(Heads):
    def setUp(self) -> None:
        super().setUp()
        if not self.llama.is_dir():
            self.skipTest("the shared reference models are not there")

    def test_Text_GivesTheAttentionOfEveryHead(self):
        texts = ["".join(WORDS), "A cat.", "one two " * 99]
        file = self.folder / "texts.jsonl"
        file.write_text("".join(json.dumps({"text": text}) + "\n" for text in texts))
        self.done("inspect", self.llama, "--text", file, "--tokens", "40", "--out", self.out)
        tokens, attention = self.table("tokens.parquet", TOKENS), self.table("attention.parquet", ATTENTION)
        ids = [[row["id"] for row in tokens if row["text"] == text] for text in range(3)]
        self.assertEqual([row["position"] for row in tokens], [i for one in ids for i in range(len(one))])
        self.assertEqual(len(ids[2]), 40)
        model = Llama(self.llama)
        expected = [model.attention(one) for one in ids]
        rows = [(text, layer, head, query) for text in range(3) for layer in range(3) for head in range(4)
                for query in range(len(ids[text]))]
        self.assertEqual([(row["text"], row["layer"], row["head"], row["query"]) for row in attention], rows)
        for row in attention:
            weights = expected[row["text"]][row["layer"], row["head"], row["query"], :row["query"] + 1]
            self.assertEqual(len(row["weights"]), row["query"] + 1)
            self.assertLess(np.abs(np.array(row["weights"]) - weights).max(), TOLERANCE)
            self.assertAlmostEqual(sum(row["weights"]), 1, delta=1e-6)

    def test_Pieces_AreTheTextWithBytesOfCharactersAsNumbers(self):
        self.done("inspect", self.llama, "--text", self.text, "--tokens", "99", "--attention-heads", "L2H1", "--out", self.out)
        pieces = [row["piece"] for row in self.table("tokens.parquet", TOKENS)]
        self.assertEqual(pieces[0], "<|begin_of_text|>")
        whole = b""
        for piece in pieces[1:]:
            while (start := piece.find("⟨0x")) >= 0:
                whole += piece[:start].encode() + bytes([int(piece[start + 3:start + 5], 16)])
                self.assertEqual(piece[start + 5], "⟩")
                piece = piece[start + 6:]
            whole += piece.encode()
        self.assertEqual(whole.decode(), "".join(WORDS))
        self.assertTrue(any("⟨0xE7⟩" in piece for piece in pieces))
        heads = {(row["layer"], row["head"]) for row in self.table("attention.parquet", ATTENTION)}
        self.assertEqual(heads, {(2, 1)})

    def test_Examples_AreThoseThatNumPyFinds(self):
        data, tokens = self.folder / "data.jsonl", self.folder / "tokens.bin"
        data.write_text("".join(json.dumps({"text": WORDS[i % 3] + f"{i} and {i * i}. "}) + "\n" for i in range(99)))
        self.done("tokenize", data, "--tokenizer", self.llama, "--out", tokens)
        time, sequences = 48, 4
        self.done("inspect", self.llama, "--data", data, "--seq-len", time, "--batch", "2", "--set", "train.validation_batches=2",
                  "--set", "data.validation_sample=false", "--examples", "20", "--out", self.out)
        examples = self.table("examples.parquet", EXAMPLES)
        self.assertEqual(len(examples), 3 * 4 * 20)
        pieces, stream = self.stream(data)
        model = Llama(self.llama)
        attention = np.array([model.attention(stream[b * time:(b + 1) * time]) for b in range(sequences)])
        ends = [i for i, token in enumerate(stream) if token == model.config["eos_token_id"]]
        for layer in range(3):
            for head in range(4):
                weights = attention[:, layer, head]
                away = weights[:, 1:, 1:]  # queries and keys from 1 on; those behind the query are 0
                strengths = away.max(-1)
                order = np.argsort(-strengths.ravel(), kind="stable")
                queries = len(order)
                self.assertLess(queries, 512)  # all are in the sample
                own = [row for row in examples if (row["layer"], row["head"]) == (layer, head)]
                ranks = [*range(8), *(8 + (2 * i + 1) * (queries - 8) // 24 for i in range(12))]
                for row, rank in zip(own, ranks, strict=True):
                    place = (row["sequence"], row["query"] - 1)
                    self.assertAlmostEqual(row["strength"], strengths.ravel()[order[rank]], delta=TOLERANCE)
                    self.assertAlmostEqual(row["strength"], strengths[place], delta=TOLERANCE)
                    self.assertAlmostEqual(away[place][row["key"] - 1], row["strength"], delta=TOLERANCE)
                    self.assertAlmostEqual(row["quantile"], 1 - rank / queries, delta=1.5 / queries)  # float32 may swap two
                    first = min(max(0, row["query"] - 16), time - 33)
                    self.assertEqual(row["query_at"], row["query"] - first)
                    inside = first <= row["key"] < first + 33
                    self.assertEqual(row["key_at"], row["key"] - first if inside else None)
                    expected = weights[row["sequence"], row["query"], first:first + 33]
                    self.assertLess(np.abs(np.array(row["weights"]) - expected).max(), TOLERANCE)
                    begin = row["sequence"] * time + first
                    self.assertEqual(row["pieces"], pieces[begin:begin + 33])
                    at = row["sequence"] * time + row["query"]
                    self.assertEqual(row["document"], sum(end < at for end in ends))

    def stream(self, data: Path) -> tuple[list[str], list[int]]:
        """The pieces and ids of the documents one after another, from tokens.parquet of the documents alone."""
        pieces, ids, end = [], [], json.loads((self.llama / "config.json").read_text())["eos_token_id"]
        names = {token["id"]: token["content"] for token in json.loads((self.llama / "tokenizer.json").read_text())["added_tokens"]}
        for i, line in enumerate(data.read_text().splitlines()):
            if len(ids) > 4 * 48:
                return pieces, ids
            text, out = self.folder / f"{i}.txt", self.folder / f"text {i}"
            text.write_text(json.loads(line)["text"])
            self.done("inspect", self.llama, "--text", text, "--attention-heads", "L0H0", "--out", out)
            for row in parquet.read_table(out / "tokens.parquet").to_pylist():
                pieces.append(row["piece"])
                ids.append(row["id"])
            pieces.append(names[end])
            ids.append(end)
        raise AssertionError("too little text")

    def test_WhatIsWrong_IsSaidInOneLine(self):
        for heads, words in (("L3H0", "L3H0 is not there; the model has layers 0 to 2 of heads 0 to 3"),
                             ("L0K1", "'L0K1' is no query head"), ("L0H0,", "'' is no query head"), ("L0H0x", "'L0H0x' is no")):
            self.refused(words, self.llama, "--text", self.text, "--attention-heads", heads)
        self.refused("--tokens is 0", self.llama, "--text", self.text, "--tokens", "0")
        self.refused("is not there", self.llama, "--text", self.folder / "nowhere.txt")
        self.refused("--attention-heads: names the heads of --text", self.llama, "--attention-heads", "L0H0")
        self.refused("give text with --data", self.llama, "--text", self.text, "--examples", "3")
        self.refused("--examples is -1", self.llama, "--examples", "-1")
        empty = self.folder / "empty.jsonl"
        empty.write_text("")
        self.refused("empty.jsonl: holds no text", self.llama, "--text", empty)
        (self.folder / "latin.txt").write_bytes(b"caf\xe9")
        self.refused("is not UTF-8", self.llama, "--text", self.folder / "latin.txt")


class OfACheckpoint(Heads):
    def test_TextAndExamples_StandBesideTheTables(self):
        checkpoint = program.shared / "run"
        self.done("inspect", checkpoint, "--out", self.folder / "plain")
        self.done("inspect", checkpoint, "--text", self.text, "--tokens", "20", "--examples", "5", "--out", self.out)
        new = {"attention.parquet", "tokens.parquet", "examples.parquet"}
        changed = set(differing(files_of(self.folder / "plain"), files_of(self.out)))
        self.assertEqual({name for name in map(str, changed) if name not in ("manifest.json", "config.yaml", "report.html")}, new)
        tokens = self.table("tokens.parquet", TOKENS)
        text = "".join(WORDS).encode()
        self.assertEqual([row["id"] for row in tokens], [257, *text[:19]])
        self.assertEqual("".join(row["piece"] for row in tokens), "⟨start⟩" + text[:19].decode())
        self.assertEqual(len(self.table("attention.parquet", ATTENTION)), LAYERS * HEADS * 20)
        examples = self.table("examples.parquet", EXAMPLES)
        self.assertEqual(len(examples), LAYERS * HEADS * 5)
        for row in examples:  # 32 tokens a sequence are the window
            self.assertEqual((len(row["pieces"]), row["query_at"], row["key_at"]), (32, row["query"], row["key"]))
            self.assertEqual(row["strength"], row["weights"][row["key_at"]])
            self.assertEqual(row["strength"], max(row["weights"][1:]))
            self.assertEqual(set(row["weights"][row["query"] + 1:]), {0.0} if row["query"] < 31 else set())

    def test_AnInspection_IsGoneOnWithAndReplaced(self):
        flags = (program.shared / "run", "--text", self.text, "--tokens", "20", "--examples", "5", "--out", self.out)
        self.done("inspect", *flags)
        before = files_of(self.out)
        self.assertIn("step 12", self.done("inspect", "--resume", "--out", self.out))
        self.assertEqual(differing(files_of(self.out), before), [])
        self.done("inspect", *flags, "--overwrite")
        again = files_of(self.out)
        self.assertEqual({str(name) for name in differing(again, before)} - {"manifest.json", "report.html"}, set())

    def test_SeveralModels_HaveNoSingleHeads(self):
        several = [program.shared / f"run/checkpoints/step-{step:06}" for step in (5, 12)]
        self.refused("--examples: is for one model", *several, "--examples", "5")
        self.refused("--text: is for one model", *several, "--text", self.text)

    def test_TheFirstEightTexts_AreRead(self):
        file = self.folder / "many.jsonl"
        file.write_text("".join(json.dumps({"text": f"text {i}"}) + "\n" for i in range(9)))
        done = run("inspect", program.shared / "run", "--text", file, "--out", self.out)
        self.assertIn("attention is written of its first 8 texts", done.stderr)
        self.assertEqual({row["text"] for row in self.table("tokens.parquet", TOKENS)}, set(range(8)))


class OfManyHeads(Heads):
    @classmethod
    def setUpClass(cls) -> None:
        cls.model = program.shared / "many"  # large weights give heads roles
        sizes = ("model.layers=3", "model.heads=100", "model.kv_heads=100", "model.d_k=2", "model.qk_norm=false", "model.init_std=0.3")
        done = run("train", *settings(*sizes, program.steps(1)), "--out", cls.model, "--no-report")
        assert done.returncode == program.DONE, done.stderr

    def written(self, *arguments: object) -> tuple[str, set[tuple[int, int]]]:
        done = run("inspect", self.model, "--text", self.text, "--tokens", "5", "--out", self.out, "--overwrite", *arguments)
        self.assertEqual(done.returncode, program.DONE, done.stderr)
        return done.stderr, {(row["layer"], row["head"]) for row in self.table("attention.parquet", ATTENTION)}

    def test_AttentionIsOfHeadsThatHaveARole_AndOfOthers(self):
        said, heads = self.written()
        roles = parquet.read_table(self.out / "roles.parquet").to_pylist()
        place = lambda row: (row["layer"], row["head"])  # noqa: E731
        mixed = sorted(place(row) for row in roles if row["role"] == "mixed")
        kinds = {row["role"] for row in roles} - {"mixed"}
        wanted = {place(row) for row in roles if row["role"] != "mixed"}
        self.assertGreater(len(kinds), 1)
        self.assertEqual(len(heads), 64)
        self.assertLessEqual(wanted, heads)  # choice_test.cpp: more than there is room for
        room = 64 - len(wanted)
        self.assertEqual(heads - wanted, {mixed[i * (len(mixed) - 1) // (room - 1)] for i in range(room)})
        self.assertIn(f"of 300 heads: {len(wanted)} that have a role, by clarity, and {room} evenly; --attention-heads", said)

    def test_WithoutRoles_HeadsAreEvenlyChosen(self):
        said, heads = self.written("--track", "norm")
        self.assertEqual(heads, {divmod(i * 299 // 63, 100) for i in range(64)})
        self.assertIn("attention of 64 of 300 heads: evenly;", said)

    def test_WhatIsWrong_IsSaidBeforeTheMeasurement(self):
        self.refused("is not there", self.model, "--text", self.folder / "nowhere.txt")
        self.refused("L3H0 is not there", self.model, "--text", self.text, "--attention-heads", "L3H0")
        self.text.write_text("word " * 2000)
        self.refused("weights of 64 heads are too many", self.model, "--text", self.text, "--tokens", "4096")


if __name__ == "__main__":
    program.main()
