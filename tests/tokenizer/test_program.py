"""What a user sees of `--tokenizer`: printed tokens, token files, training; the `tokenizers` library says which tokens they are.

usage: python test_program.py PATH_TO_HEADSCOPE [unittest options]
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from tokenizers import Tokenizer, decoders, models, pre_tokenizers, processors, trainers

DONE, WRONG_USAGE = 0, 2
TEXTS = ["first document\n", "ünïcödé, and 😀", "third " * 200, "<|end|> in the middle"]
headscope: Path


def run(*arguments: object) -> subprocess.CompletedProcess:
    return subprocess.run([headscope, *map(str, arguments)], capture_output=True, text=True, timeout=300)


def small_tokenizer(vocabulary: int = 300) -> Tokenizer:
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    tokenizer.train_from_iterator(TEXTS, trainers.BpeTrainer(
        vocab_size=vocabulary, show_progress=False, special_tokens=["<|begin|>", "<|end|>"],
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet()))
    tokenizer.post_processor = processors.TemplateProcessing("<|begin|> $A", special_tokens=[("<|begin|>", 0)])
    return tokenizer


class TokenizerFlag(unittest.TestCase):
    def setUp(self) -> None:
        temporary = tempfile.TemporaryDirectory()
        self.addCleanup(temporary.cleanup)
        self.folder = Path(temporary.name)
        self.out = self.folder / "out.bin"
        self.model = self.folder / "models--org--name"
        snapshot = self.model / "snapshots" / "abc"
        snapshot.mkdir(parents=True)
        self.library = small_tokenizer()
        self.library.save(str(snapshot / "tokenizer.json"))
        (snapshot / "tokenizer_config.json").write_text(json.dumps({"bos_token": "<|begin|>", "eos_token": {"content": "<|end|>"}}))
        self.file = snapshot / "tokenizer.json"
        self.lines = self.folder / "lines.jsonl"

    def refuse(self, *arguments: object, words: tuple[str, ...]) -> None:
        done = run(*arguments)
        self.assertEqual(done.returncode, WRONG_USAGE, done.stderr)
        said = [line for line in done.stderr.splitlines() if "tokenizing: " not in line]
        self.assertEqual(len(said), 1, done.stderr)
        for word in words:
            self.assertIn(word, done.stderr)

    def expected(self, texts: list[str]) -> list[int]:
        return [token for text in texts for token in (*self.library.encode(text).ids, 1)]

    def test_lines_are_printed(self) -> None:
        self.lines.write_text("".join(json.dumps(text) + "\n" for text in TEXTS))
        for tokenizer in (self.file, self.file.parent, self.model):
            done = run("tokenize", "--tokenizer", tokenizer, "--lines", self.lines, "--json")
            self.assertEqual((done.returncode, done.stderr), (DONE, ""))
            self.assertEqual([json.loads(line) for line in done.stdout.splitlines()], [self.library.encode(text).ids for text in TEXTS])
        done = run("tokenize", "--lines", self.lines, "--json", "--no-special")
        self.assertEqual([json.loads(line) for line in done.stdout.splitlines()], [list(text.encode()) for text in TEXTS])
        self.lines.write_text("")
        self.assertEqual(run("tokenize", "--lines", self.lines, "--json").stdout, "")

    def test_wrong_lines_are_named(self) -> None:
        tokenize = ("tokenize", "--tokenizer", self.model, "--lines", self.lines, "--json")
        for wrong, words in ((b"\"a\xff\"", "is not UTF-8"), (b"{}", "is not a JSON string"), (b"", "is not a JSON string"),
                             (b"\"a", "is not a JSON string"), (b"\"\\ud800\"", "is not a JSON string"), (b"[" * 100_000, "is not a JSON string")):
            self.lines.write_bytes(b"\"good\"\n" + wrong + b"\n\"good\"\n")
            self.refuse(*tokenize, words=("lines.jsonl: line 2", words))
        self.refuse(*tokenize, "--out", self.out, words=("--lines prints", "--out"))
        self.refuse("tokenize", "--lines", self.folder / "none.jsonl", words=("none.jsonl",))
        self.refuse("tokenize", self.lines, words=("--out FILE.bin is missing",))

    def test_token_file(self) -> None:
        text = self.folder / "a.txt"
        text.write_text("\n<|endoftext|>\n".join(TEXTS))
        texts = [one + "\n" if one != TEXTS[-1] else one for one in TEXTS]
        done = run("tokenize", text, "--tokenizer", self.model, "--out", self.out, "--json")
        self.assertEqual(done.returncode, DONE, done.stderr)
        tokens = np.fromfile(self.out, "<u2").tolist()
        self.assertEqual(tokens, self.expected(texts))
        info = json.loads((self.folder / "out.json").read_text())
        self.assertEqual(info | {"tokenizer": None}, {"type": "u16", "vocabulary": self.library.get_vocab_size(), "tokenizer": None, "end_of_text": 1,
                                                      "begin_of_text": 0, "tokens": len(tokens), "documents": len(TEXTS)})
        self.assertRegex(info["tokenizer"], "^tokenizer.json [0-9a-f]{32}$")

    def test_large_vocabularies_have_wide_tokens(self) -> None:
        self.library.add_tokens([f"<{i}>" for i in range(70_000)])
        self.library.save(str(self.file))
        text = self.folder / "a.txt"
        text.write_text("a<69999>b")
        self.assertEqual(run("tokenize", text, "--tokenizer", self.file, "--out", self.out).returncode, DONE)
        self.assertEqual(np.fromfile(self.out, "<u4").tolist(), self.expected(["a<69999>b"]))

    def test_wrong_bytes_are_named_with_their_line(self) -> None:
        text = self.folder / "a.txt"
        text.write_bytes(b"one\n<|endoftext|>\ntwo\nthree\nfo\xffur\n")
        tokenize = ("--tokenizer", self.model, "--out", self.out)
        self.refuse("tokenize", text, *tokenize, words=("a.txt: line 5: is not UTF-8",))
        self.assertFalse(self.out.exists())
        self.assertEqual(run("tokenize", text, "--out", self.out).returncode, DONE)  # bytes take anything
        table = self.folder / "a.parquet"
        pq.write_table(pa.table({"text": pa.array([b"a", b"\xff"]).cast(pa.string(), safe=False)}), table)
        self.refuse("tokenize", table, *tokenize, "--overwrite", words=("a.parquet: document 2: is not UTF-8",))

    def test_damaged_tokenizers_are_named(self) -> None:
        text = self.folder / "a.txt"
        text.write_text("a")

        def refuse(words: str, tokenizer: Path = self.file) -> None:
            self.refuse("tokenize", text, "--tokenizer", tokenizer, "--out", self.out, words=(words,))

        good = json.loads(self.file.read_text())
        for words, change in (("Unigram is not supported", {"model": {"type": "Unigram", "vocab": [["a", 0.0]]}}),
                              ("WordPiece is not supported", {"model": {"type": "WordPiece", "vocab": {"a": 0}}}),
                              ("pre-tokenizer 'Other' is not supported", {"pre_tokenizer": {"type": "Other"}}),
                              ("which is not in the vocabulary", {"model": good["model"] | {"merges": [["zz", "y"]]}})):
            self.file.write_text(json.dumps(good | change))
            refuse(words)
        self.file.write_text("[" * 100_000)
        refuse("nested deeper than 64")
        self.file.write_text("{\"model\": 1, \"model\": 1}")
        refuse("the key 'model' comes twice")
        refuse("tokenizer.json: is not there", self.folder)
        refuse("none: is not there", self.folder / "none")
        self.file.write_text(json.dumps(good))
        (self.file.parent / "tokenizer_config.json").unlink()
        refuse("no token is known that ends a text")

    def test_training_takes_the_vocabulary(self) -> None:
        text = self.folder / "a.jsonl"
        text.write_text("".join(json.dumps({"text": one * 20 + str(i)}) + "\n" for i in range(40) for one in TEXTS))
        small = [f"--set={pair}" for pair in ("train.tokens=512", "train.batch=2", "train.seq_len=32", "train.validation_batches=1", "model.layers=1",
                                              "train.probe_every=4", "train.accumulation=1", "data.validation_share=0.2")]
        out = self.folder / "run"
        done = run("train", "--data", text, "--tokenizer", self.model, *small, "--track-every", "0", "--out", out, "--quiet", "--device", "cpu")
        self.assertEqual(done.returncode, DONE, done.stderr)
        config = json.loads((out / "manifest.json").read_text())["config"]
        self.assertEqual(config["model"]["vocabulary"], self.library.get_vocab_size())
        self.assertEqual(config["data"]["tokenizer"], str(self.model))
        done = run("inspect", out, "--data", text, "--out", self.folder / "inspect", "--quiet", "--device", "cpu")
        self.assertEqual(done.returncode, DONE, done.stderr)
        self.refuse("train", "--tokenizer", self.model, "--out", self.folder / "other", words=("data.tokenizer", "the embedded language"))
        self.refuse("train", "--data", text, "--tokenizer", self.folder / "none", "--out", self.folder / "other", words=("data.tokenizer", "is not there"))


if __name__ == "__main__":
    headscope = Path(sys.argv[1]).resolve()
    unittest.main(argv=[sys.argv[0], *sys.argv[2:]])
