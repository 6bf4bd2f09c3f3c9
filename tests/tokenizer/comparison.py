"""What the tests against the `tokenizers` library share."""

import json
import random
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path


def ranges_of_newer(tool):
    return json.loads(subprocess.run([tool, "newer"], check=True, capture_output=True, text=True).stdout)


class Comparison(unittest.TestCase):
    """Ids and texts of a tokenizer file beside those of the library."""

    maxDiff = 500
    tool = sys.argv[1] if len(sys.argv) > 1 else None  # the program of tests/tokenizer/program

    @classmethod
    def setUpClass(cls):
        cls.temporary = tempfile.TemporaryDirectory()
        cls.folder = Path(cls.temporary.name)
        cls.newer = {code for first, last in ranges_of_newer(cls.tool) for code in range(first, last + 1)}

    @classmethod
    def tearDownClass(cls):
        cls.temporary.cleanup()

    def known(self, text):
        return "".join(c for c in text if ord(c) not in self.newer)

    def ask(self, file, asked):
        sent = "".join(json.dumps(one) + "\n" for one in asked)
        result = subprocess.run([self.tool, file], input=sent, capture_output=True, text=True)
        self.assertEqual(result.returncode, 0, result.stderr)
        return [json.loads(line) for line in result.stdout.split("\n") if line]

    def compare(self, name, library, file, texts, not_decoded=frozenset()):
        """Both encode the texts, with special tokens and without, and decode what they got and random ids."""
        texts = [self.known(text) for text in texts]
        for special in (True, False):
            ours = self.ask(file, [{"text": text, "special": special} for text in texts])
            self.assertEqual(len(ours), len(texts))
            for text, ids in zip(texts, ours):
                self.assertEqual(ids, library.encode(text, add_special_tokens=special).ids, f"{name}: {text[:200]!a}")
        rng = random.Random(11)
        everything = [id for id in library.get_vocab(with_added_tokens=True).values() if id not in not_decoded] + [10**6]
        lists = [ids for ids in ours[:200] if not_decoded.isdisjoint(ids)] + [[rng.choice(everything) for _ in range(rng.randrange(1, 12))] for _ in range(200)]
        for skip in (True, False):
            for ids, text in zip(lists, self.ask(file, [{"ids": ids, "skip": skip} for ids in lists])):
                self.assertEqual(text, library.decode(ids, skip_special_tokens=skip), f"{name}: {ids}")
