"""What a user sees of `headscope tokenize`: Parquet and Zstandard written by pyarrow, tokens read by numpy.

usage: python test_program.py PATH_TO_HEADSCOPE [unittest options]
"""

from __future__ import annotations

import gzip
import json
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

DONE, WRONG_USAGE = 0, 2
END, START = 256, 257
TEXTS = ["first document\n", "ünïcödé", "third " * 2000]
headscope: Path


def run(*arguments: object) -> subprocess.CompletedProcess:
    return subprocess.run([headscope, "tokenize", *map(str, arguments)], capture_output=True, text=True, timeout=60)


def expected_tokens(texts: list[str]) -> list[int]:
    return [token for text in texts for token in (START, *text.encode(), END)]


class Tokenize(unittest.TestCase):
    def setUp(self) -> None:
        temporary = tempfile.TemporaryDirectory()
        self.addCleanup(temporary.cleanup)
        self.folder = Path(temporary.name)
        self.out = self.folder / "out.bin"

    def tokens(self) -> list[int]:
        return np.fromfile(self.out, "<u2").tolist()

    def refuse(self, *arguments: object, words: tuple[str, ...]) -> None:
        done = run(*arguments, "--out", self.out, "--quiet")
        self.assertEqual(done.returncode, WRONG_USAGE, done.stderr)
        self.assertEqual(len(done.stderr.splitlines()), 1, done.stderr)
        for word in words:
            self.assertIn(word, done.stderr)
        self.assertFalse(self.out.exists())
        self.assertEqual(list(self.folder.glob(".*")), [])

    def test_parquet_of_several_row_groups_and_codecs(self) -> None:
        table = pa.table({"id": [1, 2, 3], "text": TEXTS, "other": ["a", "b", "c"]})
        for how in (dict(compression="zstd"), dict(compression="snappy", row_group_size=1),
                    dict(compression="none", use_dictionary=False, data_page_version="2.0"),
                    dict(compression="gzip", data_page_size=100, use_byte_stream_split=False)):
            with self.subTest(how):
                pq.write_table(table, self.folder / "a.parquet", **how)
                done = run(self.folder / "a.parquet", "--out", self.out, "--overwrite", "--json")
                self.assertEqual(done.returncode, DONE, done.stderr)
                self.assertEqual(self.tokens(), expected_tokens(TEXTS))
        pq.write_table(pa.table({"body": pa.array(TEXTS, pa.large_string())}), self.folder / "a.parquet")
        run(self.folder / "a.parquet", "--out", self.out, "--overwrite", "--text-column", "body")
        self.assertEqual(self.tokens(), expected_tokens(TEXTS))

    def test_parquet_errors_name_column_and_row(self) -> None:
        file = self.folder / "a.parquet"
        pq.write_table(pa.table({"id": [1], "body": ["x"]}), file)
        self.refuse(file, words=("a.parquet", "no column 'text'", "id, body", "--text-column"))
        self.refuse(file, "--text-column", "id", words=("column 'id' is INT64; expected text",))
        pq.write_table(pa.table({"text": ["x", None, "y"]}), file)
        self.refuse(file, words=("column 'text': row 1 is null; expected a text",))
        pq.write_table(pa.table({"text": [["x"], ["y"]]}), file)
        self.refuse(file, words=("no column 'text'", "text.list.element"))
        pq.write_table(pa.table({"text": pa.array([], pa.string())}), file)
        self.refuse(file, words=("a.parquet: holds no text",))

    def test_damaged_parquet_is_refused_or_read_but_never_a_crash(self) -> None:
        file = self.folder / "a.parquet"
        pq.write_table(pa.table({"text": TEXTS}), file, compression="none", use_dictionary=False)
        whole = file.read_bytes()
        for size in (0, 3, 4, 12, len(whole) // 2, len(whole) - 1):
            file.write_bytes(whole[:size])
            self.refuse(file, words=("a.parquet",))
        random = np.random.default_rng(0)
        for _ in range(40):
            damaged = bytearray(whole)
            place = int(random.choice([random.integers(60), len(whole) - 1 - random.integers(300)]))
            damaged[place] ^= int(random.integers(1, 256))
            file.write_bytes(damaged)
            done = run(file, "--out", self.out, "--overwrite")
            self.assertIn(done.returncode, (DONE, WRONG_USAGE), (place, done.stderr))

    def test_all_kinds_of_files_in_a_folder(self) -> None:
        texts = self.folder / "texts"
        texts.mkdir()
        lines = "".join(json.dumps({"text": text, "n": [1, {"text": 2}]}) + "\n" for text in TEXTS)
        (texts / "a.jsonl").write_text(lines)
        (texts / "b.jsonl.gz").write_bytes(gzip.compress(lines.encode()))
        with pa.CompressedOutputStream(str(texts / "c.jsonl.zst"), "zstd") as stream:
            stream.write(lines.encode())
        (texts / "d.txt").write_text("\n<|endoftext|>\n".join(TEXTS))
        pq.write_table(pa.table({"text": TEXTS}), texts / "e.parquet")
        (texts / "notes.md").write_text("not read")
        done = run(texts, "--out", self.out)
        self.assertEqual(done.returncode, DONE, done.stderr)
        plain = [TEXTS[0] + "\n", TEXTS[1] + "\n", TEXTS[2]]
        self.assertEqual(self.tokens(), expected_tokens(3 * TEXTS + plain + TEXTS))
        self.assertRegex(done.stdout, rf"15 documents, {len(self.tokens())} tokens, 1\.00 bytes per token")
        info = json.loads(self.out.with_suffix(".json").read_text())
        self.assertEqual(info, {"type": "u16", "vocabulary": 258, "tokenizer": "bytes", "end_of_text": END,
                                "begin_of_text": START, "tokens": len(self.tokens()), "documents": 15})

    def test_the_embedded_language_has_the_entropy_it_claims(self) -> None:
        done = run("--language", 500000, "--language-seed", 5, "--out", self.out, "--json")
        self.assertEqual(done.returncode, DONE, done.stderr)
        result = json.loads(done.stdout)
        tokens = np.fromfile(self.out, "<u2")
        self.assertEqual(len(tokens), result["tokens"])
        share = np.unique(tokens, return_counts=True)[1] / len(tokens)
        # docs/data.md states both; the sampling error of half a million tokens is some thousandths
        self.assertAlmostEqual(float(-(share * np.log(share)).sum()), 3.223, delta=0.01)
        self.assertAlmostEqual(result["nats"] / len(tokens), 0.580, delta=0.01)
        self.assertEqual(np.count_nonzero(tokens == END), result["documents"])

    def test_wrong_usage_is_one_line(self) -> None:
        file = self.folder / "a.txt"
        file.write_text("text")
        self.refuse(words=("either text files",))
        self.refuse(file, "--language", 5, words=("either text files",))
        self.refuse("--language", 0, words=("--language is 0", "expected 1 to"))
        self.refuse(file, "--tokenizer", "gpt", words=("gpt: is not there", "expected bytes, a tokenizer.json, a folder"))
        self.refuse(self.folder / "absent.txt", words=("absent.txt", "is not there"))
        (self.folder / "a.jsonl").write_text('{"text": "a"}\n{"text": 1}\n')
        self.refuse(self.folder / "a.jsonl", words=("a.jsonl: line 2", "is a number"))
        self.assertEqual(run(file, "--out", self.folder / "out.tok").returncode, WRONG_USAGE)
        self.assertEqual(run(file, "--out", self.out).returncode, DONE)
        again = run(file, "--out", self.out)
        self.assertEqual(again.returncode, WRONG_USAGE)
        self.assertIn("--overwrite", again.stderr)
        self.assertEqual(run(file, "--out", self.out, "--overwrite", "--quiet").stdout, "")


if __name__ == "__main__":
    headscope = Path(sys.argv.pop(1)).resolve()
    unittest.main()
