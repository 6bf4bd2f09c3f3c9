"""Every example command of README and docs runs, at a size of seconds, and every flag that they name is there.

usage: python test_docs.py PATH_TO_HEADSCOPE [unittest options]

A command runs as it is printed, in a folder that has the runs and files which the pages speak of. Only sizes are made
small, and a GPU is not asked for.
"""

from __future__ import annotations

import gzip
import os
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

ROOT = Path(__file__).resolve().parents[2]
PAGES = sorted([ROOT / "README.md", *(ROOT / "docs").rglob("*.md")])
PATIENCE = 120
SMALL = ("model.layers=8", "model.d_model=16", "model.heads=4", "model.kv_heads=2", "model.d_k=8", "model.d_ff=32",
         "train.seq_len=16", "train.batch=2", "train.tokens=256", "train.accumulation=1",
         "train.validation_batches=1", "data.validation_share=0.2")
FEW_HEADS = ("num_layers=1", "num_q_heads=2", "num_k_heads=1")
# What a page prints and another test runs: the beginning of the command, and that test.
ELSEWHERE = {
    "./headscope install": "tests/setup/completion_test.py",
    "./headscope uninstall": "tests/setup/completion_test.py",
    "docker build": "scripts/check-dockerfile",
    "docker run": "scripts/check-dockerfile",
    "cmake --preset release -DHEADSCOPE_CUDA=ON": "scripts/test-gpu",
    "./scripts/test": ".ci/run",
    "python3 python/export_reference.py": "scripts/make-references",
    "docs/studies/smollm2_plasticity/rebuild": "docs/studies/smollm2_plasticity/claims.py",
}
UNFINISHED = ("headscope study --analyze", "headscope capture", "headscope plasticity", "headscope train --ranks N")  # spans that name a command without saying what it takes
# Flags of other programs.
OTHER_FLAGS = {"--prefix", "--target", "--preset", "--build", "--rm", "--user", "--gtest_filter", "--no-deps", "--max-restarts", "--allow-run-as-root"}
headscope: Path
made: Path  # runs and files, made once


def command_lines(page: Path) -> list[str]:
    """What a reader types: the lines of code blocks without a language, up to an empty line, behind which output
    stands; or the lines behind a prompt."""
    commands = []
    for language, block in re.findall(r"^```(\w*)\n(.*?)^```", page.read_text(), re.M | re.S):
        if language or block.startswith("{"):
            continue
        lines = [line.split(" #")[0].strip() for line in block.replace("\\\n", " ").splitlines()]
        prompted = [line[2:] for line in lines if line.startswith("$ ")]
        commands += prompted or lines[:(lines + [""]).index("")]
    return commands


def spans(page: Path) -> list[str]:
    """Code in running text."""
    return re.findall(r"`([^`\n]+)`", re.sub(r"^```.*?^```", "", page.read_text(), flags=re.M | re.S))


def examples() -> list[tuple[str, str]]:
    found = []
    for page in PAGES:
        inline = [text for text in spans(page) if re.match(r"(\./)?headscope [a-z]+", text) and text not in UNFINISHED]
        found += [(str(page.relative_to(ROOT)), text) for text in [*command_lines(page), *inline]]
    return list(dict.fromkeys(found))


def run(*arguments: object, cwd: Path, timeout: int = PATIENCE) -> subprocess.CompletedProcess:
    return subprocess.run([str(headscope), *map(str, arguments)], cwd=cwd, capture_output=True, text=True,
                          timeout=timeout)


def subcommands(*of: str) -> list[str]:
    return re.findall(r"^  ([a-z]+) ", run(*of, "--help", cwd=ROOT).stdout.partition("Subcommands:")[2], re.M)


def help_of(*command: str) -> str:
    """With that of its own subcommands."""
    return run(*command, "--help", cwd=ROOT).stdout + "".join(help_of(*command, name) for name in subcommands(*command))


def sets(*entries: str) -> list[str]:
    return [text for entry in entries for text in ("--set", entry)]


def captured(folder: Path) -> None:
    for name in (f"l{layer:02}{head}" for layer in (0, 4, 5, 6, 7) for head in ("h00q", "h01q", "h00k")):
        (folder / name).mkdir(parents=True)
        seed = sum(map(ord, name))
        vectors = [[((i * 7919 + j * 104729 + seed * 31) % 2003) / 1001 - 1 for j in range(4)] for i in range(300)]
        table = pa.table({"bucket": pa.array([i % 100 // 50 for i in range(300)], pa.int32()),
                          "example_id": pa.array([i // 100 for i in range(300)], pa.int32()),
                          "position": pa.array([i % 100 for i in range(300)], pa.int32()),
                          "vector": pa.array(vectors, pa.list_(pa.float32(), 4))})
        pq.write_table(table, folder / name / "data.parquet")


def make(folder: Path) -> None:
    """What the pages take for given: texts, a run, a study, captured vectors and their analysis."""
    text = "".join(f'{{"text": "the cat number {i} sat on mat {i * i}, and so on for some words"}}\n' for i in range(25000))
    (folder / "text.jsonl").write_text(text)
    (folder / "mine.yaml").write_text(re.search(r"```yaml\n(.*?)```", (ROOT / "docs/roles.md").read_text(), re.S)[1])
    (folder / "own.yaml").write_text(re.search(r"```yaml\n(.*?)```", (ROOT / "docs/study.md").read_text(), re.S)[1])
    (folder / "strings.jsonl").write_text('"one string"\n"and another"\n')
    (folder / "a.jsonl").write_text(text)
    pq.write_table(pa.table({"text": ["one text of a table", "and another"]}), folder / "b.parquet")
    (folder / "corpus").mkdir()
    (folder / "corpus/a.jsonl").write_text(text)
    with gzip.open(folder / "corpus.jsonl.gz", "wt") as file:
        file.write(text)
    (folder / "configs").symlink_to(ROOT / "configs")
    captured(folder / "DATA")
    shutil.copytree(folder / "DATA", folder / "DATA/Qwen_Qwen3_8B")
    reference = Path(os.environ.get("HEADSCOPE_SHARED", ROOT.parent / "shared")) / "reference/models/tiny/llama"
    if reference.is_dir():
        for name in ("MODEL_WITH_TOKENIZER", *(f"pythia-70m/step{step}" for step in (512, 1000, 143000))):
            shutil.copytree(reference, folder / name)
    commands = [["tokenize", "text.jsonl", "--out", "train.bin"],
                ["train", *sets(*SMALL), "--track-every", "1", "--out", "RUN"],
                ["study", *sets(*SMALL, "track.metrics=all", "track.every=4"), "--out", "STUDY"],
                ["surgery", "STUDY/QK", "--shares", "0,1", "--bits", "8", "--repeats", "1", "--out", "SURGERY"]]
    commands.append(["capture", "RUN", "--max-documents", "40", "--out", "CAPTURED"])
    commands += [["plasticity", "DATA", "--layers", "0,4-7", "--no-figures", "--out", out] for out in ("P1", "P2")]
    if reference.is_dir():
        commands.append(["inspect", *sorted((folder / "pythia-70m").iterdir()), "--data", "text.jsonl", "--batch", "4",
                         "--seq-len", "64", "--out", "COURSE"])
    (folder / "MODEL").mkdir()
    published = ROOT / "tests/model/published/qwen3"
    for source, name in (("default.json", "MODEL/config.json"), ("model.safetensors", "MODEL"), ("default.npz", "FILE.npz")):
        shutil.copy(published / source, folder / name)
    for command in commands:
        done = run(*command, cwd=folder)
        if done.returncode != 0:
            raise AssertionError(f"{command}: {done}")
    for name in ("corpus", "val"):
        for ending in ("bin", "json"):
            shutil.copy(folder / f"train.{ending}", folder / f"{name}.{ending}")


def as_typed(text: str) -> list[str]:
    """The words behind the program's name, with what stands for something else replaced by it."""
    text = re.sub(r"^(\w+=\S+ )*", "", text)  # variables of the environment: tests/setup sets them
    text = re.sub(r"^\S*headscope\s*", "", text)
    text = text.replace("pythia-70m/step*", "pythia-70m/step512 pythia-70m/step1000")
    text = re.sub(r"INPUT\.\.\.|corpus/\*\.jsonl", "corpus/a.jsonl", text).replace("jsonl.zst", "jsonl.gz")
    text = text.replace("--layers 0,3-5", "--layers 0,1-2")  # the small model has three
    text = re.sub(r"--device cuda(:\d)?", "--device cpu", text).replace("--language N", "--language 500")
    text = text.replace("CHECKPOINT", "RUN").replace("[KEY|PART]", "optim").replace("step-000150", "step-000008")
    tokenizer = "MODEL_WITH_TOKENIZER" if (made / "MODEL_WITH_TOKENIZER").exists() else "bytes"
    text = re.sub(r"\[?--tokenizer T\]?", f"--tokenizer {tokenizer}", text).replace("--lines FILE.jsonl", "--lines strings.jsonl")
    return shlex.split(text)


def runs_by_name(words: list[str]) -> dict[str, str]:
    """The runs that the command speaks of, under the names that it gives them."""
    command = words[0]
    run_of = {"plasticity": "P1", "study": "STUDY"}.get(command, "RUN")
    if command == "plot" and "--per-head" in words:
        run_of = "P1"
    links = {"runs/first": run_of, "runs/second": "P2", "RUN1": "P1", "RUN2": "P2", "runs/surgery-QK": "SURGERY",
             "DIR": "STUDY"}
    if command == "capture":
        links["OUT"] = "CAPTURED"
    if "captures/model" in words:
        links["captures/model"] = "CAPTURED"
    if "runs/pythia" in words:
        links["runs/pythia"] = "COURSE"
    if any(word.startswith("RUN/QK") for word in words):
        links["RUN"] = "STUDY"
    elif run_of != "RUN":
        links["RUN"] = run_of
    return links


class Documentation(unittest.TestCase):
    def sandbox(self, words: list[str]) -> Path:
        temporary = tempfile.TemporaryDirectory(prefix="headscope docs ")
        self.addCleanup(temporary.cleanup)
        folder = Path(temporary.name) / "work"
        (folder / "runs").mkdir(parents=True)
        for entry in made.iterdir():  # runs can be written to
            shutil.copytree(entry, folder / entry.name) if entry.name.isupper() else (
                folder / entry.name).symlink_to(entry)
        for name, source in runs_by_name(words).items():
            shutil.rmtree(folder / name, ignore_errors=True)
            shutil.copytree(made / source, folder / name)
        if "--out" in words and "--resume" not in words:
            out = folder / words[words.index("--out") + 1]
            shutil.rmtree(out, ignore_errors=True)
            for file in (out, out.with_suffix(".json")):
                file.unlink() if file.is_symlink() else None
        return folder

    def test_EveryExampleRuns(self):
        ran = 0
        for page, text in examples():
            with self.subTest(page=page, command=text):
                if elsewhere := [test for start, test in ELSEWHERE.items() if text.startswith(start)]:
                    self.assertTrue((ROOT / elsewhere[0]).exists())
                    continue
                words = as_typed(text)
                if {"MODEL", "--data"} <= {*words}:
                    words[words.index("MODEL")] = "MODEL_WITH_TOKENIZER"
                    if not (made / "MODEL_WITH_TOKENIZER").exists():
                        continue  # without the shared reference models
                small = []
                if words[0] in ("train", "study") and not {"--resume", "--analyze", "--dry-run"} & {*words}:
                    small = sets(*SMALL, *(["train.accumulation=4"] if "--ranks" in words else []))
                if "--config" in words:
                    small = sets(*FEW_HEADS)
                if words[0] == "surgery":
                    small = ["--shares", "0,1"] if "--repeats" in words else ["--repeats", "1", "--shares", "0,1"]
                if {"runs/pythia", "pythia-70m/step512"} & {*words} and not (made / "COURSE").exists():
                    continue  # likewise
                if words[0] == "inspect" and {"MODEL_WITH_TOKENIZER", "pythia-70m/step512"} & {*words}:
                    small = ["--batch", "4", "--seq-len", "64"]
                if words[0] in ("capture", "plasticity") and "--data" in words and "--max-documents" not in words:
                    small = ["--max-documents", "50"]
                folder = self.sandbox(words)
                done = run(*words, *small, cwd=folder)
                self.assertEqual(done.returncode, 0, f"{text}\n{done.stdout}\n{done.stderr}")
                ran += 1
        self.assertGreater(ran, 40)  # the pages were found

    def test_EveryProgramInPythonRuns(self):
        folder = self.sandbox(["train"])
        for seed in (42, 43):
            shutil.copytree(made / "RUN", folder / f"runs/seeds/seed_{seed}")
        programs = [code for page in PAGES for code in re.findall(r"^```python\n(.*?)^```", page.read_text(), re.M | re.S)]
        self.assertGreater(len(programs), 0)
        for code in programs:
            done = subprocess.run([sys.executable, "-c", code], cwd=folder, capture_output=True, text=True)
            self.assertEqual(done.returncode, 0, done.stderr)
            self.assertEqual(done.stdout.count("± 0.00 over 2 seeds"), 16, done.stdout)  # 8 layers, the same run twice

    def test_EveryFlagOfThePagesIsAFlagOfTheProgram(self):
        known = {name: set(re.findall(r"--[a-z][a-z-]*", help_of(name))) for name in subcommands()}
        everything = set().union(*known.values()) | OTHER_FLAGS | {"--help", "--version"}
        for page in PAGES:
            for text in spans(page):
                if text.startswith(("scripts/", "srun", "sbatch", "scancel", "mpirun", "mpiexec", "torchrun")):
                    continue
                flags = set(re.findall(r"(?<![\w-])--[a-z][a-z_-]*", text))
                words = text.replace("./headscope ", "").replace("headscope ", "").split()
                wanted = known[words[0]] | {"--help"} if flags and words[0] in known else everything
                self.assertLessEqual(flags, wanted, f"{page.name}: {text}")

    def test_EveryPageThatTheProgramNamesIsThere(self):
        named = {page for name in subcommands() for page in re.findall(r"docs/\w+\.md", help_of(name))}
        self.assertGreaterEqual(len(named), 3)
        for page in named:
            self.assertTrue((ROOT / page).is_file(), page)

    def test_EveryLinkOfThePagesLeadsSomewhere(self):
        for page in PAGES:
            for target in re.findall(r"\]\(([^)#\s]+)(?:#[^)]*)?\)", page.read_text()):
                if "://" not in target:
                    self.assertTrue((page.parent / target).exists(), f"{page.name}: {target}")


def setUpModule() -> None:
    global made
    temporary = tempfile.TemporaryDirectory(prefix="headscope docs made ")
    unittest.addModuleCleanup(temporary.cleanup)
    made = Path(temporary.name)
    make(made)


if __name__ == "__main__":
    headscope = Path(sys.argv.pop(1)).resolve()
    unittest.main()
