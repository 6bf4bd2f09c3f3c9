#!/usr/bin/env python3
"""Token ids and decoded text equal those of the `tokenizers` library, on random and nasty texts.

    test_against_library.py TOKENIZER_TOOL PROGRAM

Small tokenizers of every supported component are trained here by the library itself. Published ones are tried where they are:
HEADSCOPE_TOKENIZERS names a folder with NAME/tokenizer.json (fetch_published.py fills one), HEADSCOPE_SHARED that of the references.
"""

import itertools
import json
import os
import random
import subprocess
import sys
import unicodedata
import unittest
from pathlib import Path

from tokenizers import AddedToken, Regex, Tokenizer, decoders, models, normalizers, pre_tokenizers, processors, trainers

sys.path.insert(0, str(Path(__file__).parent))
import nasty_texts  # noqa: E402
from comparison import Comparison  # noqa: E402

PROGRAM = sys.argv[2] if len(sys.argv) > 2 else None
SHARED = Path(os.environ.get("HEADSCOPE_SHARED", "../shared"))
PUBLISHED = Path(os.environ.get("HEADSCOPE_TOKENIZERS", Path.home() / ".cache/headscope/tokenizers"))
TEXTS = int(os.environ.get("HEADSCOPE_TOKENIZER_TEXTS", "100"))  # for each small tokenizer; published ones get 10 times as many

CORPUS = ["The quick brown fox jumps over the lazy dog, don't you know? It's 1234 times as quick.", "naïve café, Straße, ĄĘ, e\u0301, ﬁne ①②",
          "你好世界 こんにちは 안녕하세요 नमस्ते мир 😀👍🏽", "def f(x):\n    return x + 1  # twice\n\n\n", "a  b   c\t\td\r\ne", "aaaa bbbb abab " * 3]

GPT2 = r"'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+"
LLAMA3 = r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
O200K = (r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+(?i:'s|'t|'re|'ve|'m|'ll|'d)?|"
         r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*(?i:'s|'t|'re|'ve|'m|'ll|'d)?|\p{N}{1,3}|"
         r" ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+")
KIMI = (r"[\p{Han}]+|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}&&[^\p{Han}]]*[\p{Ll}\p{Lm}\p{Lo}\p{M}&&[^\p{Han}]]+|"
        r"\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+")
PATTERNS = [
    GPT2, LLAMA3, O200K, KIMI, r"[!\"#$%&'()*+,\-./:;<=>?@\[\\\]^_`{|}~][A-Za-z]+|[^\r\n\p{L}\p{P}\p{S}]?[\p{L}\p{M}]+| ?[\p{P}\p{S}]+[\r\n]*",
    r"[一-龥぀-ゟ゠-ヿ]+", r"\p{N}{1,3}", r"[0-9][0-9][0-9]", r"[^\r\n\p{L}\p{N}]?+\p{L}+|\p{N}{1,3}+| ?[^\s\p{L}\p{N}]++[\r\n]*+|\s++$|\s*[\r\n]|\s+(?!\S)|\s",
    r"\w+|[^\w\s]+", r"[^\w\s]", r"\W", r"\d+|\D", r"\s+$", r"^\s+", r"\b\w", r"\B.", r"[\s\S]{3}", r".{1,5}", r"[^\S\r\n]+", r"(?<=\p{L})\p{N}", r"(?<!a)b|(?>a+)b",
    r"\p{Lu}\p{Ll}*", r"\P{L}+", r"\p{^L}+", r"[\p{^L}a]+", r"\p{Letter}|\p{Number}", r"\p{Hiragana}+|\p{Katakana}+|\p{Cyrillic}+", r"(?i)the|DOG", r"(a|b)+", r"a{2}",
    r"a{,2}b", r"[a-f\d\-_.]+", r"[\x41-\x5A\u0430-\u044f]+", r"\x{1F600}|\t|\x20", r"[^a-z[A-Z]]+", r"[a-z&&[^aeiou]]+", r"[^a-z&&[^aeiou]]", r"\h+", r"(?=\p{Lu})", r"x*", r"\A.|.\z",
    r"\p{Space}+", r"[[a-c][x-z]]", r"(?:ab?)+?", r"\{|\}|{|}|]", r"(?-i:a)|(?i:B)", r"\p{Cn}", r"\p{Sc}|\p{Sm}|\p{Zs}|\p{Cc}|\p{Cf}", r"[\W]+", r"[\W\d]+",
]


def trained(model=None, **parts):
    """A tokenizer with these parts, whose merges are learned from the corpus through them."""
    tokenizer = Tokenizer(models.BPE(**(model or {})))
    for name in ("normalizer", "pre_tokenizer"):
        if name in parts:
            setattr(tokenizer, name, parts[name])
    bytes_known = ["<0x%02X>" % byte for byte in range(256)] if (model or {}).get("byte_fallback") else []
    special = [token for token in [(model or {}).get("unk_token")] if token] + bytes_known
    alphabet = pre_tokenizers.ByteLevel.alphabet() if "ByteLevel" in repr(parts) else []
    options = {name: model[name] for name in ("continuing_subword_prefix", "end_of_word_suffix") if model and name in model}
    trainer = trainers.BpeTrainer(vocab_size=len(special) + len(alphabet) + 300, show_progress=False, special_tokens=special,
                                  initial_alphabet=alphabet, **options)
    tokenizer.train_from_iterator(CORPUS, trainer)
    for name in ("post_processor", "decoder"):
        if name in parts:
            setattr(tokenizer, name, parts[name])
    return tokenizer


def visible(pre_tokenizer=None, normalizer=None):
    """Without merges, every byte is a token, and a mark stands before each word: the ids show the text and where it is cut."""
    vocabulary = {"<0x%02X>" % byte: byte for byte in range(256)}
    tokenizer = Tokenizer(models.BPE(vocab=vocabulary, merges=[], byte_fallback=True))
    mark = pre_tokenizers.Metaspace("\ue000", prepend_scheme="always", split=False)
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence([pre_tokenizer, mark]) if pre_tokenizer else mark
    if normalizer:
        tokenizer.normalizer = normalizer
    return tokenizer


BEHAVIORS = ["removed", "isolated", "contiguous", "merged_with_previous", "merged_with_next"]


def small_tokenizers():
    bytes_only = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)
    for prefix in (True, False):
        yield f"gpt2 {prefix}", trained(pre_tokenizer=pre_tokenizers.ByteLevel(add_prefix_space=prefix), decoder=decoders.ByteLevel(),
                                        post_processor=processors.ByteLevel(trim_offsets=False))
    for name, pattern in (("llama3", LLAMA3), ("o200k", O200K), ("kimi", KIMI)):
        for ignore in (True, False):
            tokenizer = trained({"ignore_merges": ignore}, decoder=decoders.ByteLevel(),
                                pre_tokenizer=pre_tokenizers.Sequence([pre_tokenizers.Split(Regex(pattern), "isolated"), bytes_only]))
            tokenizer.add_special_tokens(["<|begin|>", "<|end|>"])
            ids = [(name, tokenizer.token_to_id(name)) for name in ("<|begin|>", "<|end|>")]
            tokenizer.post_processor = processors.Sequence([
                processors.ByteLevel(), processors.TemplateProcessing("<|begin|> $A <|end|>", special_tokens=ids)])
            yield f"{name} {ignore}", tokenizer
    for form in ("NFC", "NFD", "NFKC", "NFKD"):
        yield form, trained(normalizer=getattr(normalizers, form)(), pre_tokenizer=pre_tokenizers.ByteLevel(add_prefix_space=False))
    yield "falcon", trained(pre_tokenizer=pre_tokenizers.Sequence([
        pre_tokenizers.Punctuation("contiguous"), pre_tokenizers.ByteLevel(add_prefix_space=False), pre_tokenizers.Digits(),
        pre_tokenizers.Split(Regex("[0-9][0-9][0-9]"), "isolated")]))
    for scheme, split, fallback, fuse in itertools.product(("always", "never", "first"), (True, False), (True, False), (True, False)):
        tokenizer = trained({"unk_token": "<unk>", "byte_fallback": fallback, "fuse_unk": fuse},
                            pre_tokenizer=pre_tokenizers.Metaspace(prepend_scheme=scheme, split=split))
        tokenizer.decoder = decoders.Sequence([decoders.ByteFallback(), decoders.Metaspace(prepend_scheme=scheme)])
        tokenizer.add_tokens([AddedToken("fox", normalized=False)])
        yield f"metaspace {scheme} {split} {fallback} {fuse}", tokenizer
    prepend = normalizers.Sequence([normalizers.Prepend("▁"), normalizers.Replace(" ", "▁")])
    strip = decoders.Sequence([decoders.Replace("▁", " "), decoders.ByteFallback(), decoders.Fuse(), decoders.Strip(" ", 1, 0)])
    llama2 = trained({"unk_token": "<unk>", "byte_fallback": True, "fuse_unk": True}, normalizer=prepend, decoder=strip)
    llama2.add_special_tokens(["<s>", "</s>"])
    llama2.post_processor = processors.TemplateProcessing("<s> $A", special_tokens=[("<s>", llama2.token_to_id("<s>"))])
    yield "llama2", llama2
    yield "gemma", trained({"unk_token": "<unk>", "byte_fallback": True}, normalizer=normalizers.Replace(" ", "▁"),
                           pre_tokenizer=pre_tokenizers.Split(" ", "merged_with_previous"), decoder=strip)
    yield "unknown characters vanish", trained(pre_tokenizer=pre_tokenizers.Whitespace())
    yield "word ends", trained({"unk_token": "<unk>", "end_of_word_suffix": "</w>"}, pre_tokenizer=pre_tokenizers.WhitespaceSplit(),
                               normalizer=normalizers.Lowercase(), decoder=decoders.BPEDecoder("</w>"))
    yield "continued words", trained({"unk_token": "<unk>", "continuing_subword_prefix": "##"},
                                     pre_tokenizer=pre_tokenizers.BertPreTokenizer())
    yield "bytes as characters", trained(normalizer=normalizers.ByteLevel(), decoder=decoders.ByteLevel())
    for name, kind in (("roberta", processors.RobertaProcessing), ("bert", processors.BertProcessing)):
        yield name, trained({"unk_token": "<unk>"}, pre_tokenizer=pre_tokenizers.ByteLevel(), post_processor=kind(("a", 5), ("b", 6)))


def added_token_tokenizers():
    """Every combination of flags, on contents that are words, parts of words, signs and spaces."""
    normal = normalizers.Sequence([normalizers.Lowercase(), normalizers.Replace("q", "k")])
    contents = ["<tag>", "fox", "ab", "é", "THE", " x ", "<|a|>", "<|a|><|b|>", "ａ", "a\n"]
    rng = random.Random(3)
    for flags in itertools.product((True, False), repeat=4):
        chosen = dict(zip(("lstrip", "rstrip", "single_word", "normalized"), flags))
        tokenizer = trained({"unk_token": "<unk>", "byte_fallback": True}, normalizer=normal,
                            pre_tokenizer=pre_tokenizers.Metaspace(prepend_scheme="first"))
        tokens = [AddedToken(content, special=rng.random() < 0.5, **chosen) for content in contents]
        tokenizer.add_special_tokens([token for token in tokens if token.special])
        tokenizer.add_tokens([token for token in tokens if not token.special])
        yield f"added tokens {chosen}", tokenizer


def visible_tokenizers():
    for pattern in PATTERNS:
        yield f"pattern {pattern}", visible(pre_tokenizers.Split(Regex(pattern), "isolated"))
    for behavior, invert in itertools.product(BEHAVIORS, (True, False)):
        for pattern in (Regex(r"\s+"), " ", "ab", Regex(r"\p{L}")):
            yield f"split {pattern} {behavior} {invert}", visible(pre_tokenizers.Split(pattern, behavior, invert))
    for behavior in BEHAVIORS:
        yield f"punctuation {behavior}", visible(pre_tokenizers.Punctuation(behavior))
    for individual in (True, False):
        yield f"digits {individual}", visible(pre_tokenizers.Digits(individual))
    yield "whitespace", visible(pre_tokenizers.Whitespace())
    yield "whitespace split", visible(pre_tokenizers.WhitespaceSplit())
    yield "bert", visible(pre_tokenizers.BertPreTokenizer())
    yield "delimiter", visible(pre_tokenizers.CharDelimiterSplit("e"))
    for form in ("NFC", "NFD", "NFKC", "NFKD", "Lowercase", "StripAccents"):
        yield form, visible(None, getattr(normalizers, form)())
    for left, right in itertools.product((True, False), repeat=2):
        yield f"strip {left} {right}", visible(None, normalizers.Strip(left, right))
    for pattern, content in ((" ", "_"), ("aa", "a"), (Regex(r"\s+"), " "), (Regex(r"^\s+|\s+$"), ""), (Regex("(?=a)"), "|"), (Regex("[aeiou]"), "")):
        yield f"replace {pattern} {content}", visible(None, normalizers.Replace(pattern, content))
    yield "prepend", visible(None, normalizers.Sequence([normalizers.Strip(), normalizers.Prepend("xy")]))
    yield "accents", visible(None, normalizers.Sequence([normalizers.NFD(), normalizers.StripAccents(), normalizers.Lowercase()]))


class AgainstLibrary(Comparison):
    def compare_small(self, tokenizers, texts):
        for name, library in tokenizers:
            with self.subTest(name):
                file = self.folder / "tokenizer.json"
                library.save(str(file))
                added = [token.content for token in library.get_added_tokens_decoder().values()]
                self.compare(name, library, file, nasty_texts.FIXED + list(nasty_texts.random_texts(texts, name, added)))

    def test_small_tokenizers(self):
        self.compare_small(small_tokenizers(), TEXTS)

    def test_added_tokens(self):
        self.compare_small(added_token_tokenizers(), 2 * TEXTS)

    def test_every_component(self):
        self.compare_small(visible_tokenizers(), TEXTS // 2)

    def test_every_code_point(self):
        codes = [c for c in range(0x110000) if not 0xD800 <= c < 0xE000 and c not in self.newer and unicodedata.category(chr(c)) not in ("Cn", "Co")]
        texts = ["".join(f"{chr(c)}a {chr(c)}\u0345\u0334 " for c in codes[i : i + 256]) for i in range(0, len(codes), 256)]
        tokenizers = [(form, visible(None, getattr(normalizers, form)())) for form in ("NFC", "NFD", "NFKC", "NFKD", "Lowercase", "StripAccents")]
        tokenizers += [(pattern, visible(pre_tokenizers.Split(Regex(pattern), "isolated")))
                       for pattern in (r"\p{L}", r"\p{N}", r"[\p{P}\p{S}]", r"\p{M}", r"\s", r"\w", r"\p{Han}", r"\p{Lu}|\p{Ll}(?=a)", r"(?i:s|k|i)")]
        tokenizers += [("whitespace", visible(pre_tokenizers.Whitespace())), ("punctuation", visible(pre_tokenizers.Punctuation())),
                       ("digits", visible(pre_tokenizers.Digits(True)))]
        for name, library in tokenizers:
            with self.subTest(name):
                file = self.folder / "tokenizer.json"
                library.save(str(file))
                ours = self.ask(file, [{"text": text, "special": True} for text in texts])
                for text, ids in zip(texts, ours):
                    self.assertEqual(bytes(ids).decode(), bytes(library.encode(text).ids).decode(), name)

    def test_older_spellings(self):
        """Merges as texts; a model without its type; a Metaspace with add_prefix_space."""
        library = trained({"unk_token": "<unk>"}, pre_tokenizer=pre_tokenizers.Metaspace())
        text = json.loads(library.to_str())
        text["model"]["merges"] = ["#version: 0.2"] + [" ".join(pair) for pair in text["model"]["merges"]]
        del text["model"]["type"]
        text["pre_tokenizer"] = {"type": "Metaspace", "replacement": "▁", "add_prefix_space": True, "str_rep": "▁"}
        file = self.folder / "tokenizer.json"
        file.write_text(json.dumps(text))
        self.compare("older", Tokenizer.from_file(str(file)), file, nasty_texts.FIXED)

    def test_long_words(self):
        """Ours are linear; the library's are, too, but slow: it is asked for a part of them."""
        library = dict(small_tokenizers())["llama3 False"]
        file = self.folder / "tokenizer.json"
        library.save(str(file))
        texts = list(nasty_texts.long_words())
        ours = self.ask(file, [{"text": text, "special": True} for text in texts])
        for text, ids in list(zip(texts, ours))[::5]:
            self.assertEqual(ids, library.encode(text).ids, f"{text[:20]!a}")

    def test_program_prints_the_same(self):
        library = dict(small_tokenizers())["llama3 True"]
        file = self.folder / "tokenizer.json"
        library.save(str(file))
        texts = [self.known(text) for text in nasty_texts.FIXED]
        lines = self.folder / "lines.jsonl"
        lines.write_text("".join(json.dumps(text) + "\n" for text in texts))
        for special in (True, False):
            flags = [] if special else ["--no-special"]
            result = subprocess.run([PROGRAM, "tokenize", "--tokenizer", self.folder, "--lines", lines, "--json", *flags],
                                    capture_output=True, text=True)
            self.assertEqual((result.returncode, result.stderr), (0, ""))
            self.assertEqual([json.loads(line) for line in result.stdout.splitlines()],
                             [library.encode(text, add_special_tokens=special).ids for text in texts])

    def test_newer_code_points_are_counted(self):
        library = dict(small_tokenizers())["gpt2 False"]
        file = self.folder / "tokenizer.json"
        library.save(str(file))
        lines = self.folder / "lines.jsonl"
        lines.write_text(json.dumps("a \U000e0fff\u0378 b") + "\n")  # not assigned in any version so far
        result = subprocess.run([PROGRAM, "tokenize", "--tokenizer", file, "--lines", lines, "--json"], capture_output=True, text=True)
        self.assertEqual(result.returncode, 0)
        self.assertIn("2 of the text's code points are newer than Unicode ", result.stderr)

    def test_published_tokenizers(self):
        files = [*sorted(SHARED.glob("reference/models/tiny/*/tokenizer.json")), *sorted(PUBLISHED.glob("*/tokenizer.json"))]
        if not files:
            self.skipTest(f"no tokenizers in {PUBLISHED}; tests/tokenizer/fetch_published.py fetches some")
        for file in files:
            with self.subTest(file.parent.name):
                library = Tokenizer.from_file(str(file))
                added = [token.content for token in library.get_added_tokens_decoder().values()]
                texts = nasty_texts.FIXED + list(nasty_texts.random_texts(10 * TEXTS, file.parent.name, added))
                self.compare(file.parent.name, library, file, texts)


if __name__ == "__main__":
    unittest.main(argv=[sys.argv[0], *sys.argv[3:]])
