"""Text beyond the range of a published model (max_position_embeddings): sequences are cut to it, longer documents are counted, and
both are said.

usage: python test_range.py PATH_TO_HEADSCOPE [unittest options]
"""

from __future__ import annotations

import json
import string
import sys
from pathlib import Path

import program
from program import Program, head_values, run

PUBLISHED = Path(__file__).resolve().parent.parent / "model/published"
LETTERS = string.ascii_lowercase
BATCHES, BATCH = 4, 2
# Characters of the documents, each of which is one token of the tokenizer below; another one ends the document.
LENGTHS = [5, 49, 48, 47, 120, 30, 64, 65, 7] * 8


def read_until(tokens: int) -> list[int]:
    """The documents that are read for so many tokens."""
    count, read = 0, 0
    while read < tokens:
        read += LENGTHS[count] + 1
        count += 1
    return LENGTHS[:count]


class Range(Program):
    def setUp(self) -> None:
        super().setUp()
        vocabulary = {piece: number for number, piece in enumerate(["<end>", "<unknown>", *LETTERS])}
        self.tokenizer = self.folder / "tokenizer"
        self.tokenizer.mkdir()
        (self.tokenizer / "tokenizer.json").write_text(json.dumps({
            "version": "1.0", "truncation": None, "padding": None, "normalizer": None, "pre_tokenizer": None, "post_processor": None, "decoder": None,
            "added_tokens": [{"id": 0, "content": "<end>", "single_word": False, "lstrip": False, "rstrip": False, "normalized": False, "special": True}],
            "model": {"type": "BPE", "dropout": None, "unk_token": "<unknown>", "continuing_subword_prefix": None, "end_of_word_suffix": None,
                      "fuse_unk": False, "byte_fallback": False, "ignore_merges": False, "vocab": vocabulary, "merges": []}}))
        (self.tokenizer / "tokenizer_config.json").write_text('{"eos_token": "<end>"}')
        self.text = self.folder / "text.jsonl"
        with open(self.text, "w") as file:
            for number, length in enumerate(LENGTHS):
                file.write(json.dumps({"text": "".join(LETTERS[(number + i * i) % 26] for i in range(length))}) + "\n")

    def model(self, variant: str, longest: int | None) -> Path:
        folder = self.folder / f"{variant} {longest}"
        folder.mkdir()
        config = json.loads((PUBLISHED / f"llama/{variant}.json").read_text())
        if longest is None:
            del config["max_position_embeddings"]
        else:
            config["max_position_embeddings"] = longest
        (folder / "config.json").write_text(json.dumps(config))
        (folder / "model.safetensors").symlink_to(PUBLISHED / "llama/model.safetensors")
        return folder

    def warned(self, model: Path, *more: object, data: Path | None = None, command: str = "inspect") -> tuple[list[str], Path]:
        out = self.folder / f"out {len(list(self.folder.iterdir()))}"
        given = ["--tokenizer", self.tokenizer, "--batch", str(BATCH)] if command == "inspect" else []
        result = run(command, model, "--data", data or self.text, *given, *more, "--out", out)
        self.assertEqual(result.returncode, program.DONE, result.stderr)
        return [line for line in result.stderr.splitlines() if "warning" in line], out

    def length_of(self, out: Path) -> int:
        return json.loads((out / "manifest.json").read_text())["config"]["train"]["seq_len"]

    def assert_documents(self, line: str, longest: int, length: int) -> None:
        read = read_until(BATCHES * BATCH * length + 1)
        beyond = sum(one > longest for one in read)
        self.assertGreater(beyond, 1)
        self.assertLess(len(read), len(LENGTHS))
        self.assertIn(f"{beyond} of {len(read)} documents read are longer than the model's {longest} tokens; they are cut into sequences of "
                      f"{length} tokens", line)

    def test_Sequences_AreCutToTheRange(self):
        for variant, longest in (("default", 48), ("yarn", 48), ("dynamic", 30)):
            model = self.model(variant, longest)
            (cut, documents), out = self.warned(model)
            self.assertIn(f"the model's range is {longest} tokens; sequences have {longest} instead of 256", cut)
            self.assert_documents(documents, longest, longest)
            self.assertEqual(self.length_of(out), longest)
            asked, same = self.warned(model, "--seq-len", str(longest))
            self.assertEqual(asked, [documents])
            self.assertEqual(head_values(out, "probe"), head_values(same, "probe"))
            (cut, again), longer = self.warned(model, "--seq-len", "100")
            self.assertIn(f"sequences have {longest} instead of 100", cut)
            self.assertEqual(again, documents)
            self.assertEqual(head_values(longer, "probe"), head_values(same, "probe"))

    def test_InsideTheRange_OnlyLongDocumentsAreSaid(self):
        model = self.model("default", 48)
        (documents,), out = self.warned(model, "--seq-len", "40")
        self.assert_documents(documents, 48, 40)
        self.assertEqual(self.length_of(out), 40)
        lines, _ = self.warned(self.model("default", 120), "--seq-len", "40")
        self.assertEqual(lines, [])

    def test_AnUnknownRange_CutsNothing(self):
        lines, out = self.warned(self.model("default", None), "--seq-len", "200")
        self.assertEqual((lines, self.length_of(out)), ([], 200))

    def test_TokensAndGguf_AreTheSame(self):
        longest = 64  # context_length of the GGUF file
        tokens = self.folder / "text.bin"
        self.done("tokenize", self.text, "--tokenizer", self.tokenizer, "--out", tokens)
        (cut, documents), of_text = self.warned(self.model("default", longest))
        self.assert_documents(documents, longest, longest)
        gguf = PUBLISHED / "llama/default.gguf"
        for model, data in ((self.folder / "default 64", tokens), (gguf, tokens), (gguf, self.text)):
            lines, out = self.warned(model, data=data)
            self.assertEqual([lines[0].split(": ")[-1], lines[1]], [cut.split(": ")[-1], documents])
            if data is tokens and model != gguf:
                self.assertEqual(head_values(out, "probe"), head_values(of_text, "probe"))

    def test_ALaterRevision_WithAShorterRangeIsRefused(self):
        result = run("inspect", self.model("default", 48), self.model("default", 30), "--steps", "1,2", "--data", self.text, "--tokenizer",
                     self.tokenizer, "--batch", str(BATCH), "--out", self.folder / "out")
        self.assertEqual(result.returncode, program.WRONG_USAGE, result.stderr)
        self.assertIn("default 30: its range is 30 tokens, and sequences have 48; give --seq-len 30", result.stderr)

    def test_Surgery_SaysItToo(self):
        model = self.model("default", 8)
        for file in self.tokenizer.iterdir():
            (model / file.name).symlink_to(file)
        (cut, documents), _ = self.warned(model, "--shares", "0,1", "--repeats", "1", "--bits", "8", command="surgery")
        self.assertIn("the model's range is 8 tokens; sequences have 8 instead of 256", cut)
        self.assertIn("documents read are longer than the model's 8 tokens; they are cut into sequences of 8 tokens", documents)


if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).resolve().parent))
    program.main()
