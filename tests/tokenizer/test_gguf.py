#!/usr/bin/env python3
"""The tokenizer of a GGUF file gives the ids of the tokenizer.json that it was made of, as the `tokenizers` library has them.

    test_gguf.py TOKENIZER_TOOL PROGRAM

Files are written here by the gguf package, from small tokenizers and from published ones where they are (HEADSCOPE_TOKENIZERS, see
test_against_library.py). tests/model/fetch_real.py fetches a real file. HEADSCOPE_GGUF_VOCABULARIES names a folder with other real files NAME.gguf, each
with texts (NAME.gguf.inp) and ids (NAME.gguf.out), as llama.cpp keeps them.
"""

import json
import os
import subprocess
import sys
import unittest
from pathlib import Path

from tokenizers import AddedToken, Regex, Tokenizer, decoders, models, normalizers, pre_tokenizers, processors

sys.path[:0] = [str(Path(__file__).parent), str(Path(__file__).parent.parent / "model")]
import fetch_real  # noqa: E402
import gguf_files  # noqa: E402
import nasty_texts  # noqa: E402
import test_against_library as published  # noqa: E402
from comparison import Comparison  # noqa: E402

PROGRAM = sys.argv[2] if len(sys.argv) > 2 else None
DONE, WRONG_USAGE = 0, 2

QWEN2 = published.LLAMA3.replace("{1,3}", "")
TEKKEN = published.O200K.replace("(?i:'s|'t|'re|'ve|'m|'ll|'d)?", "").replace("{1,3}", "")
DEEPSEEK_V3 = (r"[!\"#$%&'()*+,\-./:;<=>?@\[\\\]^_`{|}~][A-Za-z]+|[^\r\n\p{L}\p{P}\p{S}]?[\p{L}\p{M}]+| ?[\p{P}\p{S}]+[\r\n]*|"
               r"\s*[\r\n]+|\s+(?!\S)|\s+")
# Published tokenizers: the kind, the name of the split, rows of the embedding where there are more than tokens.
PUBLISHED = {
    "gpt2": ("gpt2", "gpt-2"), "text_davinci002": ("gpt2", "gpt-2"), "smollm2": ("gpt2", "smollm"), "llama3": ("gpt2", "llama-bpe"),
    "llama3_1": ("gpt2", "llama-bpe"), "llama3_2": ("gpt2", "llama-bpe"), "qwen1_5": ("gpt2", "qwen2"), "qwen2_5": ("gpt2", "qwen2", 151936),
    "qwen3": ("gpt2", "qwen2", 151936), "gpt4": ("gpt2", "dbrx"), "gpt4o": ("gpt2", "gpt-4o"), "mistral_nemo": ("gpt2", "tekken"),
    "deepseek_v3": ("gpt2", "deepseek-v3", 129280), "llama2": ("llama", "default", 32064), "gemma2": ("llama", "default"),
    "gemma3": ("llama", "default", 262208), "yi": ("llama", "default"), "baichuan2": ("llama", "default"), "chatglm3": ("llama", "default"),
}


def byte_level(pre_tokenizer, model=None, normalizer=None, begin=True):
    parts = {"normalizer": normalizer} if normalizer else {}
    tokenizer = published.trained(model, pre_tokenizer=pre_tokenizer, decoder=decoders.ByteLevel(), **parts)
    tokenizer.add_special_tokens(["<|begin|>", "<|end|>", "<unk>"])
    tokenizer.add_tokens([AddedToken(content, normalized=False) for content in ("<tool>", "fox", "        ", "    ", "\n\n")])
    if begin:
        ids = [(name, tokenizer.token_to_id(name)) for name in ("<|begin|>", "<|end|>")]
        tokenizer.post_processor = processors.TemplateProcessing("<|begin|> $A <|end|>", special_tokens=ids)
    return tokenizer


def cut(*patterns):
    splits = [one if not isinstance(one, str) else pre_tokenizers.Split(Regex(one), "isolated") for one in patterns]
    return pre_tokenizers.Sequence([*splits, pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)])


def small_byte_level():
    """Every name of a split, by the pattern that published tokenizers of that name have."""
    gpt2 = pre_tokenizers.ByteLevel(add_prefix_space=False)
    digits = pre_tokenizers.Sequence([pre_tokenizers.Digits(True), gpt2])
    falcon = pre_tokenizers.Sequence([pre_tokenizers.Punctuation("contiguous"), gpt2, pre_tokenizers.Digits(),
                                      pre_tokenizers.Split(Regex("[0-9][0-9][0-9]"), "isolated")])
    ideographs = "[一-龥ࠀ-一가-\ud7ff]+"
    ignoring, nfc = {"ignore_merges": True}, normalizers.NFC()
    for name in ("gpt-2", "phi-2"):
        yield name, byte_level(gpt2)
    for name in ("mpt", "olmo"):
        yield name, byte_level(gpt2, normalizer=nfc)
    for name in ("smollm", "starcoder", "refact"):
        yield name, byte_level(digits, begin=False)
    yield "command-r", byte_level(digits, normalizer=nfc)
    yield "falcon", byte_level(falcon)
    for name in ("llama-bpe", "llama3", "llama-v3", "smaug-bpe"):
        yield name, byte_level(cut(published.LLAMA3), ignoring)
    for name in ("dbrx", "glm4", "chatglm-bpe"):
        yield name, byte_level(cut(published.LLAMA3), begin=False)
    for name in ("qwen2", "deepseek-r1-qwen"):
        yield name, byte_level(cut(QWEN2), normalizer=nfc)
    yield "tekken", byte_level(cut(TEKKEN), ignoring)
    for name in ("gpt-4o", "llama4"):
        yield name, byte_level(cut(published.O200K))
    yield "deepseek-v3", byte_level(cut(r"\p{N}{1,3}", "[一-龥぀-ゟ゠-ヿ]+", DEEPSEEK_V3))
    yield "deepseek-coder", byte_level(cut(r"[\r\n]", r"\s?\p{L}+", r"\s?\p{P}+", ideographs, r"\p{N}"))
    yield "default", byte_level(cut(r"[\p{P}\$\+<=>\^~\|]+", published.GPT2, r"\p{N}+", "[0-9][0-9][0-9]"))


def merges_of_scores(vocabulary, scores):
    """Every way to cut a piece into two, by descending score: as the library's conversions of sentencepiece models do it."""
    merges = []
    for piece in sorted(vocabulary, key=vocabulary.get):
        cuts = [(piece[:i], piece[i:]) for i in range(1, len(piece)) if piece[:i] in vocabulary and piece[i:] in vocabulary]
        merges += [(scores[piece], pair) for pair in sorted(cuts, key=lambda pair: (vocabulary[pair[0]], vocabulary[pair[1]]))]
    return [pair for _, pair in sorted(merges, key=lambda merge: merge[0], reverse=True)]


def sentencepiece(prefix, fallback=True, equal_scores=False):
    """A tokenizer whose merges are those of scores; pieces of one score where `equal_scores`."""
    steps = [normalizers.Prepend("▁")] if prefix else []
    normalizer = normalizers.Sequence([*steps, normalizers.Replace(" ", "▁")])
    base = published.trained({"unk_token": "<unk>", "byte_fallback": fallback}, normalizer=normalizer,
                             pre_tokenizer=pre_tokenizers.Split("▁", "merged_with_next"))
    vocabulary, ranks = base.get_vocab(), {}
    for rank, pair in enumerate(json.loads(base.to_str())["model"]["merges"]):
        ranks.setdefault("".join(pair), 0 if equal_scores else rank // 3)  # some have the same
    scores = {piece: -float(ranks.get(piece, 0)) for piece in vocabulary}
    of_text = {piece: id for piece, id in vocabulary.items() if not piece.startswith("<")}
    tokenizer = Tokenizer(models.BPE(vocab=vocabulary, merges=merges_of_scores(of_text, scores), unk_token="<unk>", fuse_unk=True, byte_fallback=fallback))
    tokenizer.normalizer = normalizer
    steps = [decoders.Replace("▁", " "), decoders.ByteFallback(), decoders.Fuse()]
    tokenizer.decoder = decoders.Sequence([*steps, decoders.Strip(" ", 1, 0)] if prefix else steps)
    tokenizer.add_special_tokens(["<unk>", "<s>", "</s>"])
    tokenizer.add_tokens([AddedToken(content, normalized=False) for content in ("<tool>", "\n\n", "<b>")])
    tokenizer.post_processor = processors.TemplateProcessing("<s> $A", special_tokens=[("<s>", tokenizer.token_to_id("<s>"))])
    return tokenizer, scores


class GgufTokenizers(Comparison):
    def setUp(self):
        self.file = self.folder / "model.gguf"

    def texts(self, library, name, count):
        added = [token.content for token in library.get_added_tokens_decoder().values()]
        return nasty_texts.FIXED + list(nasty_texts.random_texts(count, name, added)) + [f"x{' ' * i}y" for i in range(1, 40)]

    def refuse(self, words, values, **options):
        gguf_files.write_metadata(self.file, values, **options)
        lines = self.folder / "lines.jsonl"
        lines.write_text('"a"\n')
        done = subprocess.run([PROGRAM, "tokenize", "--tokenizer", self.file, "--lines", lines, "--json"], capture_output=True, text=True)
        self.assertEqual((done.returncode, len(done.stderr.splitlines())), (WRONG_USAGE, 1), done.stderr)
        self.assertIn(words, done.stderr)
        self.assertIn("model.gguf: ", done.stderr)

    def test_small_byte_level_tokenizers(self):
        for name, library in small_byte_level():
            with self.subTest(name):
                values = gguf_files.metadata(json.loads(library.to_str()), "gpt2", name, rows=library.get_vocab_size() + 7)
                gguf_files.write_metadata(self.file, values)
                self.compare(name, library, self.file, self.texts(library, name, published.TEXTS))

    def test_small_sentencepiece_tokenizers(self):
        for prefix, fallback, equal in ((True, True, False), (False, True, False), (True, False, False), (True, True, True)):
            with self.subTest(prefix=prefix, fallback=fallback, equal=equal):
                library, scores = sentencepiece(prefix, fallback, equal)
                values = gguf_files.metadata(json.loads(library.to_str()), "llama", "default", rows=library.get_vocab_size() + 7)
                values["scores"] = [scores.get(token, -1000.0) for token in values["tokens"]]
                gguf_files.write_metadata(self.file, values)
                self.compare("sentencepiece", library, self.file, self.texts(library, "sentencepiece", 5 * published.TEXTS))

    def test_runs_of_spaces_are_tokens_of_sentencepiece(self):
        """As Gemma has them: added tokens, and pieces of the highest score, the longest left part first."""
        library, scores = sentencepiece(prefix=False)
        source = json.loads(library.to_str())
        vocabulary = source["model"]["vocab"]
        vocabulary |= {token["content"]: token["id"] for token in source["added_tokens"]}  # the library gives ids by the count of pieces
        for run in ("▁" * i for i in (2, 3, 4, 5, 6, 7, 8, 12, 31)):
            id = vocabulary.setdefault(run, library.get_vocab_size() + len(run))
            source["added_tokens"].append(source["added_tokens"][-1] | {"id": id, "content": run, "special": False})
        runs = [["▁" * left, "▁" * right] for left in range(31, 0, -1) for right in range(31, 0, -1)]
        first = [pair for pair in runs if all(part in vocabulary for part in (*pair, "".join(pair)))]
        source["model"]["merges"] = first + [pair for pair in source["model"]["merges"] if set("".join(pair)) != {"▁"}]
        library = Tokenizer.from_str(json.dumps(source))
        values = gguf_files.metadata(source, "llama", "default")
        self.assertIn(" " * 31, values["tokens"])
        values["scores"] = [scores.get(token, -1000.0) for token in values["tokens"]]
        gguf_files.write_metadata(self.file, values)
        texts = [f"a{' ' * i}b{'▁' * (i // 3)} {'▁' * (i % 5)}" for i in range(100)] + [f"{' ' * i}\n" for i in range(40)]
        self.compare("runs", library, self.file, texts + self.texts(library, "runs", published.TEXTS))

    def test_phi3_strips_what_is_behind_its_tokens(self):
        library, scores = sentencepiece(prefix=True)
        library.add_special_tokens([AddedToken("<|user|>", rstrip=True), AddedToken("<|endoftext|>")])
        values = gguf_files.metadata(json.loads(library.to_str()), "llama", "default")
        values["scores"] = [scores.get(token, -1000.0) for token in values["tokens"]]
        gguf_files.write_metadata(self.file, values, architecture="phi3")
        texts = ["<|user|> \n a", "a <|user|>b", "<|endoftext|> a", "<s> a <|user|>"]
        self.compare("phi3", library, self.file, texts)

    def test_published_tokenizers(self):
        names = [name for name in PUBLISHED if (published.PUBLISHED / name / "tokenizer.json").is_file()]
        if not names:
            self.skipTest(f"no tokenizers in {published.PUBLISHED}; tests/tokenizer/fetch_published.py fetches some")
        for name in names:
            with self.subTest(name):
                source = json.loads((published.PUBLISHED / name / "tokenizer.json").read_text())
                library = Tokenizer.from_str(json.dumps(source))
                gguf_files.write_metadata(self.file, gguf_files.metadata(source, *PUBLISHED[name]))
                other = {token["id"] for token in source["added_tokens"] if not token["special"] and gguf_files.looks_special(token["content"])}
                self.compare(name, library, self.file, self.texts(library, name, 5 * published.TEXTS), other)

    def test_a_real_file(self):
        file, folder = fetch_real.models() / "smollm2.gguf", fetch_real.models() / "smollm2"
        if not file.is_file() or not (folder / "tokenizer.json").is_file():
            self.skipTest(f"no smollm2 in {fetch_real.models()}; tests/model/fetch_real.py fetches it")
        library = Tokenizer.from_file(str(folder / "tokenizer.json"))
        self.compare("smollm2", library, file, self.texts(library, "smollm2", 10 * published.TEXTS))

    def test_real_vocabularies(self):
        folder = Path(os.environ.get("HEADSCOPE_GGUF_VOCABULARIES", "none"))
        files = [file for file in sorted(folder.glob("*.gguf")) if file.with_suffix(".gguf.out").is_file() and not file.name.startswith("bert")]
        if not files:
            self.skipTest("HEADSCOPE_GGUF_VOCABULARIES names no folder of them")
        for file in files:
            with self.subTest(file.name):
                texts = file.with_suffix(".gguf.inp").read_text(encoding="utf-8").split("\n__ggml_vocab_test__\n")
                expected = [[int(id) for id in line.split()] for line in file.with_suffix(".gguf.out").read_text().splitlines()]
                ours = self.ask(file, [{"text": text, "special": False} for text in texts[: len(expected)]])
                for text, ids, wanted in zip(texts, ours, expected):
                    self.assertEqual(ids, wanted, f"{file.name}: {text!a}")

    def test_a_model_reads_text_with_its_own_tokenizer(self):
        """Measured with and without naming the tokenizer.json that its own was made of; the tokens are the same, and so is the loss."""
        letters = {letter: id for id, letter in enumerate(["<end>", *"Ġabcdefghijklmnopqrstuvwxyz", "th", "the", "Ġthe"])}
        library = Tokenizer(models.BPE(vocab=letters, merges=[("t", "h"), ("th", "e"), ("Ġ", "the")]))
        library.pre_tokenizer, library.decoder = pre_tokenizers.ByteLevel(add_prefix_space=False), decoders.ByteLevel()
        library.add_special_tokens(["<end>"])
        library.save(str(self.folder / "tokenizer.json"))
        (self.folder / "tokenizer_config.json").write_text(json.dumps({"eos_token": "<end>"}))
        values = gguf_files.metadata(json.loads(library.to_str()), "gpt2", "gpt-2", rows=61)
        gguf_files.add_metadata(Path(__file__).parent.parent / "model/published/llama/default.gguf", self.file, values | {"eos_token_id": 0})
        text = self.folder / "text.jsonl"
        text.write_text("".join(json.dumps({"text": f"the {chr(97 + i % 26)} of the day and the night " * 3}) + "\n" for i in range(600)))

        def measure(command, *flags):
            out = self.folder / "out"
            done = subprocess.run([PROGRAM, command, self.file, "--data", text, "--out", out, "--device", "cpu", "--overwrite", "--quiet", *flags],
                                  capture_output=True, text=True)
            self.assertEqual(done.returncode, DONE, done.stderr)
            manifest = json.loads((out / "manifest.json").read_text())
            return manifest["config"]["data"]["tokenizer"], manifest.get("val_loss")

        own, named = measure("inspect"), measure("inspect", "--tokenizer", self.folder / "tokenizer.json")
        self.assertEqual(own, (str(self.file), named[1]))
        self.assertNotEqual(own[1], None)
        self.assertEqual(measure("roles")[0], str(self.file))

    def test_what_is_not_supported_is_named(self):
        good = {"model": "gpt2", "pre": "gpt-2", "tokens": ["a", "b", "ab"], "token_type": [1, 1, 1], "merges": ["a b"]}
        for kind in ("bert", "t5", "rwkv", "plamo2"):
            self.refuse(f"a tokenizer of the kind {kind} (tokenizer.ggml.model) is not supported; known are gpt2", good | {"model": kind})
        self.refuse("cuts text into words as 'new' (tokenizer.ggml.pre), which is not known; known are default, gpt-2", good | {"pre": "new"})
        self.refuse("holds no tokenizer", {})
        self.refuse("holds no tokenizer", good | {"model": "no_vocab"})
        self.refuse("add_sep_token is true, which is not supported", good | {"add_sep_token": True})
        self.refuse("precompiled_charsmap is not supported", good | {"precompiled_charsmap": [1, 2]})

    def test_damage_is_named(self):
        good = {"model": "gpt2", "pre": "gpt-2", "tokens": ["a", "b", "ab"], "token_type": [1, 1, 1], "merges": ["a b"]}
        scored = {"model": "llama", "tokens": ["<unk>", "a", "b", "ab"], "token_type": [2, 1, 1, 1], "scores": [0.0, -1.0, -2.0, -3.0]}
        for words, values in (
                ("there is no 'tokenizer.ggml.tokens'", good | {"tokens": None}),
                ("there is no 'tokenizer.ggml.merges'", good | {"merges": None}),
                ("there is no 'tokenizer.ggml.scores'", scored | {"scores": None}),
                ("'tokenizer.ggml.tokens' is a list of 3 values, each a 32-bit integer; expected texts", good | {"tokens": [1, 2, 3]}),
                ("'tokenizer.ggml.merges' is a text; expected a list", good | {"merges": "a b"}),
                ("token_type has 2 values; expected 3, one for each token", good | {"token_type": [1, 1]}),
                ("scores has 5 values; expected 4, one for each token", scored | {"scores": [0.0] * 5}),
                ("token 1 ('b') is of the type 7; known are 1 to 6", good | {"token_type": [1, 7, 1]}),
                ("the score of piece 3 is not a number", scored | {"scores": [0.0, -1.0, -2.0, float("nan")]}),
                ("the piece 'a' is twice in the vocabulary", good | {"tokens": ["a", "b", "a"]}),
                ("merge 0 ('a' and 'x') names 'x', which is not in the vocabulary", good | {"merges": ["a x"]}),
                ("names 'ba', which is not in the vocabulary", good | {"merges": ["b a"]}),
                *((f"merge 1 is '{wrong}'; expected two pieces with a space between them", good | {"merges": ["a b", wrong]})
                  for wrong in ("ab", "a b ab", " b", "a ", "a  b")),
                ("bos_token_id is 3; expected an id of the 3 tokens", good | {"bos_token_id": 3}),
                ("eos_token_id is 4294967295; expected an id of the 3 tokens", good | {"eos_token_id": 2**32 - 1}),
                ("unknown_token_id is 9; expected an id of the 4 tokens", scored | {"unknown_token_id": 9}),
                ("add_bos_token is true, but tokenizer.ggml.bos_token_id is missing", good | {"add_bos_token": True}),
                ("'tokenizer.ggml.add_bos_token' is a text; expected true or false", good | {"add_bos_token": "yes"}),
                ("'tokenizer.ggml.pre' is a 32-bit integer; expected a text", good | {"pre": 1}),
                ("has 5000 bytes; expected at most 4096", good | {"tokens": ["a", "b", "ab", "x" * 5000], "token_type": [1, 1, 1, 3]}),
        ):
            with self.subTest(words):
                self.refuse(words, values)

    def test_a_missing_split_is_said(self):
        gguf_files.write_metadata(self.file, {"model": "gpt2", "tokens": ["a", "b", "ab"], "token_type": [1, 1, 1], "merges": ["a b"]})
        lines = self.folder / "lines.jsonl"
        lines.write_text('"ab"\n')
        done = subprocess.run([PROGRAM, "tokenize", "--tokenizer", self.file, "--lines", lines, "--json"], capture_output=True, text=True)
        self.assertEqual((done.returncode, done.stdout), (DONE, "[2]\n"), done.stderr)
        self.assertIn("does not say how text is cut into words", done.stderr)


if __name__ == "__main__":
    unittest.main(argv=[sys.argv[0], *sys.argv[3:]])
