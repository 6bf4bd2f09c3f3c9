"""Texts on which tokenizers tend to differ, and random ones of the same kinds."""

import random
import unicodedata

# Emoji with joiners and skin tones, combining marks in every order, ligatures, Hangul in parts, right-to-left text.
FIXED = [
    "", " ", "  ", "\n", "\r\n", "\r\n\r\n  \t\n", "\t", " \n ", "a", " a", "a ", "  a  b  ", "a\n\nb", "a \n b", "\x00", "\x00a\x01",
    "Hello, world!", "don't DON'T I'll we'Ve it'S 'tis ''s", "x'\u017f y'\u212a", "1234567890", "3.14159e-10", "a1b22c333", "१२३ ٤٥٦ Ⅷ ²³ ½",
    "\u00a0nbsp\u00a0", "\u2003em\u2003space", "\u3000full\u3000width", "\u180emongolian\u180e", "\u200bzero\u200cwidth\u200djoiner", "\ufeffbom",
    "\u0085next line\u0085", "\u2028line\u2029paragraph", "e\u0301 \u00e9 e\u0301\u0323 e\u0323\u0301", "\u1e9b\u0323 \ufb01 \u2126 \u00c5 \u212b",
    "\u1100\u1161\u11a8 \uac01", "\u0344\u0345\u0334", "a\u0315\u0300\u05ae\u0062", "\U0001f468\u200d\U0001f469\u200d\U0001f467", "\U0001f44d\U0001f3fd",
    "\U0001f1e9\U0001f1ea", "\u2764\ufe0f", "مرحبا بالعالم", "שלום עולם", "สวัสดีชาวโลก", "नमस्ते दुनिया", "你好，世界！", "こんにちは世界", "안녕하세요 세계",
    "Straße ẞ ß İ ı ǅ Σς", "ﬀ ﬃ ﬅ ŉ ǰ", "x²+y²=z²", "©®™", "$€£¥₿", "<|endoftext|>", "a<|endoftext|>b", " <|endoftext|> ", "<|end", "<|endoftext|",
    "<s></s><unk><pad><bos><eos>", "<s> a</s> b", "<0x0A><0x41>", "▁▁a ▁b", "▁", "▁ ▁", "Ġa Ġ", "ĠĊ", "http://example.com/a?b=c&d=%20#e",
    "def f(x):\n    return x  # comment\n\n\n\n\tif x:\n\t\tpass", "{\"a\": [1, 2, {\"b\": null}]}", "a\u00adb\u00ad", "\ufffd\ufffe\uffff",
    "\U0010ffff\U000f0000\ue000", "\U00011935\U00011930", "\u0378\u0379 unassigned", "I̲Î̃", "ﷺ", "㌕㍿", "①②③", "ＡＢＣ　１２３", "aaaaaaaaaaaaaaaaaaaaaaaa",
    "\n\n\n\n\n\n\n\n", "                                ", "a                                b", "....................", "!?!?!?---===___", "\x7f\x80\x9f",
]


def letters():
    """Code points that the tables of Unicode 14 know, by general category, all planes."""
    kinds = {}
    for code in range(0x110000):
        if 0xD800 <= code < 0xE000:
            continue
        kinds.setdefault(unicodedata.category(chr(code)), []).append(chr(code))
    kinds["Cn"] = [c for c in kinds["Cn"] if (ord(c) & 0xFFFE) == 0xFFFE or 0xFDD0 <= ord(c) <= 0xFDEF]  # never assigned
    return kinds


def random_texts(count, seed, tokens):
    """`tokens`: contents of added tokens, which are put into the texts, also inside words and cut off."""
    rng = random.Random(seed)
    kinds = letters()
    every = sorted(kinds)
    words = "the of and to in is that it for was on are as with his they at be this from I have or by one had not but what all".split()
    spaces = [" ", " ", " ", "  ", "\n", "\r\n", "\t", "\u00a0", "\u3000", "\n\n", "   "]

    def token():
        text = rng.choice(tokens)
        return text if rng.random() < 0.8 else text[: rng.randrange(len(text) + 1)]

    def piece():
        choice = rng.random()
        if choice < 0.25:
            return rng.choice(words)
        if choice < 0.45:
            return rng.choice(spaces)
        if choice < 0.6:
            kind = kinds[rng.choice(every)]
            return "".join(rng.choice(kind) for _ in range(rng.randrange(1, 5)))
        if choice < 0.7:
            return "".join(chr(rng.randrange(0x20, 0x7F)) for _ in range(rng.randrange(1, 8)))
        if choice < 0.75:
            return chr(rng.randrange(0, 0x20))
        if choice < 0.8:
            return str(rng.randrange(10 ** rng.randrange(1, 12)))
        if choice < 0.85:
            return rng.choice(FIXED)
        if choice < 0.9:
            return rng.choice(kinds["Mn"]) + rng.choice(kinds["Mn"])
        if choice < 0.95 and tokens:
            return token()
        return rng.choice(words).upper() + rng.choice(["'s", "'LL", "’s", "'d", "'re"])

    for _ in range(count):
        yield "".join(piece() for _ in range(rng.randrange(1, 30)))


def long_words():
    """A megabyte each."""
    size = 1 << 20
    yield "a" * size
    yield "A" * size
    yield "ab" * (size // 2)
    yield " " * size
    yield " " * size + "x"
    yield "\n" * size
    yield "1" * size
    yield "!" * size
    yield "漢" * (size // 3)
    yield "\U0001f600" * (size // 4)
    yield "e\u0345\u0334" * (size // 5)
    yield "\u0345\u0334" * (size // 4)
    yield "aB" * (size // 2)
    rng = random.Random(7)
    yield "".join(rng.choice("abcdefghijklmnopqrstuvwxyz") for _ in range(size))
    yield "".join(chr(rng.randrange(0x21, 0x7F)) for _ in range(size))
    yield "".join(rng.choice(" \n\t\r") for _ in range(size))
