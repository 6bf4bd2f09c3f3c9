"""Completion of the shells against the program: completion_test.py PROGRAM.

What is offered is compared with what the program's --help lists and accepts, read here in another way than scripts/complete does.
bash is asked always, zsh and fish where they are installed.
"""

import os
import pty
import re
import select
import shlex
import shutil
import signal
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PROGRAM = None


def help_of(*command):
    return subprocess.run([PROGRAM, *command, "--help"], capture_output=True, text=True, check=True).stdout


def subcommands(*command):
    listed = help_of(*command).partition("\nSubcommands:\n")[2]
    return re.findall(r"^  (\S+)", listed, flags=re.MULTILINE)


def all_commands(*command):
    yield command
    for inner in subcommands(*command):
        yield from all_commands(*command, inner)


class Completion(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.temporary = tempfile.TemporaryDirectory(prefix="headscope completion ")
        cls.home = Path(cls.temporary.name).resolve()
        cls.clone = cls.home / "it's a \"clone\" of $HOME \\ here"
        cls.clone.mkdir()
        shutil.copy2(ROOT / "headscope", cls.clone)
        for folder in ("scripts", "lock"):
            shutil.copytree(ROOT / folder, cls.clone / folder)
        (cls.clone / "src/heads").mkdir(parents=True)
        shutil.copy2(ROOT / "src/heads/metrics.cpp", cls.clone / "src/heads")
        release = cls.clone / "build/release"
        release.mkdir(parents=True)
        # Never run by completion: it would build.
        (release / "headscope").symlink_to(PROGRAM)
        cls.texts = {}
        for shell in ("bash", "zsh", "fish"):
            write = 'source "$0/scripts/lib/common.sh"; source "$0/scripts/lib/launcher.sh"; completion_text "$1"'
            cls.texts[shell] = cls.home / ("_headscope" if shell == "zsh" else f"completion.{shell}")
            cls.texts[shell].write_text(
                subprocess.run(["bash", "-c", write, cls.clone, shell], capture_output=True, text=True, check=True).stdout)
        cls.work = cls.home / "work"
        for run in ("runs/first", "runs/second run", "elsewhere/third"):
            (cls.work / run).mkdir(parents=True)
            (cls.work / run / "manifest.json").touch()
        (cls.work / "runs/first/checkpoints/step-10").mkdir(parents=True)
        (cls.work / "my text.txt").touch()

    @classmethod
    def tearDownClass(cls):
        cls.temporary.cleanup()

    def complete(self, *words):
        result = subprocess.run([self.clone / "scripts/complete", *words], cwd=self.work, capture_output=True, text=True)
        self.assertEqual((result.returncode, result.stderr), (0, ""))
        return [line.split("\t")[0] for line in result.stdout.splitlines()]

    # -- what is offered ----------------------------------------------------------------------------------------------

    def test_EveryCommandAndEveryFlagOfTheProgram(self):
        count = 0
        for command in all_commands():
            inner = subcommands(*command) + ([] if command else ["install", "uninstall"])
            offered = self.complete(*command, "")
            self.assertEqual(offered[:len(inner)], inner, command)  # arguments of the command come behind
            self.assertEqual(offered[len(inner):] if not command else [], [])
            lines = [line for line in help_of(*command).splitlines() if line.startswith("  -")]
            flags = [flag for line in lines for flag in re.match(r"  ((?:-[\w-]+,?)+)", line)[1].split(",")]
            self.assertEqual(self.complete(*command, "-"), flags, command)
            count += len(flags)
        self.assertGreater(count, 100)  # the program has more; fewer means that nothing was compared

    def test_EveryPreset(self):
        offered = self.complete("train", "--preset", "")
        self.assertEqual(offered, self.complete("study", "--preset", ""))
        self.assertIn("tiny", offered)
        for name in offered:
            subprocess.run([PROGRAM, "train", "--preset", name, "--dry-run"], cwd=self.work, capture_output=True, check=True)
        (count,) = re.findall(r"std::array<Setup, (\d+)> all_presets", (ROOT / "src/settings/setup.cpp").read_text())
        self.assertEqual(len(set(offered)), int(count))

    def test_EveryMetric(self):
        documented = re.findall(r"^\| `(\w+)` \| \w+ \|", (ROOT / "docs/measurements.md").read_text(), flags=re.MULTILINE)
        self.assertGreater(len(documented), 20)
        self.assertEqual(sorted(self.complete("inspect", "--show", "")), sorted(documented))
        groups = {"norm", "outlier", "rank", "redundancy", "attention", "pattern", "induction", "gain", "other_rank", "score"}
        self.assertEqual(set(self.complete("train", "--track", "")), groups | {"all"} | set(documented))
        self.assertEqual(self.complete("train", "--track", "norm,sin"), ["norm,sink"])
        self.assertEqual(set(self.complete("heads", "--by", "")), {"change"} | set(documented))

    def test_EveryKeyOfTheConfiguration(self):
        tables = re.findall(r"^## ([a-z, ]+)\n(.*?)(?=^## |\Z)", (ROOT / "docs/config.md").read_text(), flags=re.MULTILINE | re.DOTALL)
        documented = [(commands.split(", "), re.findall(r"^\| `([\w.]+)` \|", table, flags=re.MULTILINE)) for commands, table in tables]
        self.assertGreater(len(documented), 3)
        for command in {command for commands, _ in documented for command in commands}:
            keys = [key for commands, table in documented if command in commands for key in table]
            self.assertEqual(self.complete(command, "--set", ""), [f"{key}=" for key in keys], command)
        self.assertEqual(self.complete("config", ""), [key for _, table in documented for key in table])

    def test_ValuesThatTheMeaningLists(self):
        for words, values in ((("train", "--device", ""), ["auto", "cpu", "cuda"]), (("plot", "--theme", ""), ["light", "dark"]),
                              (("plasticity", "--variant", ""), ["seed", "diagonal"]), (("roles", "--source", "t"), ["train"]),
                              (("train", "--theme=d",), ["--theme=dark"]), (("train", "--theme", "=", "d"), ["dark"]),
                              (("train", "--theme", "="), ["light", "dark"]), (("train", "--seed", ""), [])):
            self.assertEqual(self.complete(*words), values, words)

    def test_ValuesThatTheirNameLists(self):
        program = self.clone / "build/release/headscope"
        program.unlink()
        try:
            program.write_text("""#!/bin/sh
cat <<'END'
Options:
  --source probe|train        Where from
  --theme TEXT:{light,dark}   Colours
  --by METRIC|change          What is ranked
  --metric METRIC             What is drawn
END
""")
            program.chmod(0o755)
            self.assertEqual(self.complete("--source", ""), ["probe", "train"])
            self.assertEqual(self.complete("--theme", "d"), ["dark"])
            self.assertEqual(self.complete("--by", "c"), ["change", "consistency", "constancy"])
            self.assertEqual(self.complete("--metric", "sin"), ["sink"])
        finally:
            program.unlink()
            program.symlink_to(PROGRAM)

    def test_RunFolders(self):
        self.assertEqual(self.complete("plot", ""), ["elsewhere/", "runs/", "runs/first", "runs/second run"])
        self.assertEqual(self.complete("plot", "runs/f"), ["runs/first"])
        self.assertEqual(self.complete("plot", "elsewhere/"), ["elsewhere/third"])
        self.assertEqual(self.complete("plot", "--theme", "dark", "runs/s"), ["runs/second run"])
        self.assertEqual(self.complete("inspect", "runs/first/checkpoints/"), ["runs/first/checkpoints/step-10"])
        file = self.work / "runs/a model.gguf"
        file.write_text("")
        self.addCleanup(file.unlink)
        self.assertEqual(self.complete("inspect", "runs/a"), ["runs/a model.gguf"])
        self.assertEqual(self.complete("plasticity", "compare", "runs/first", "runs/s"), ["runs/second run"])
        self.assertEqual(self.complete("plot", "runs/first", ""), [])  # it takes one

    def test_Files(self):
        self.assertEqual(self.complete("train", "--data", ""), ["elsewhere/", "my text.txt", "runs/"])
        self.assertEqual(self.complete("train", "--out", ""), ["elsewhere/", "runs/"])

    def test_WithoutAProgram_NothingIsBuilt(self):
        program = self.clone / "build/release/headscope"
        program.rename(self.home / "away")
        try:
            self.assertEqual(self.complete("train", "--pre"), [])
            self.assertEqual(self.complete("inst"), ["install"])
        finally:
            (self.home / "away").rename(program)

    # -- how the shells ask -------------------------------------------------------------------------------------------

    CASES = (("train", "--pre"), ("train", "--preset", "8"), ("inspect", "--show", "k_pr_e"), ("plot", "runs/s"), ("uninst",))
    ANSWERS = (["--preset"], ["88m"], ["k_pr_eig"], ["runs/second run"], ["uninstall"])

    def test_Bash(self):
        script = 'source "$0"; COMP_WORDS=(headscope "$@"); COMP_CWORD=$#; _headscope headscope "${@: -1}" "" 2>/dev/null; ' \
                 'printf "%s\\n" "${COMPREPLY[@]}"; complete -p headscope'
        for words, answers in zip(self.CASES, self.ANSWERS):
            result = subprocess.run(["bash", "-uc", script, self.texts["bash"], *words], cwd=self.work, capture_output=True, text=True)
            self.assertEqual(result.stdout.splitlines(), [*answers, "complete -F _headscope headscope"], words)

    def test_Bash_OnATerminal(self):
        for words, answers in zip(self.CASES, self.ANSWERS):
            end = "/" if (self.work / answers[0]).is_dir() else " "
            typed = " ".join(["headscope", *words[:-1], answers[0].replace(" ", "\\ ")]) + end
            self.assertEqual(self.typed_in_bash(f"headscope {' '.join(words)}"), typed)
        self.assertEqual(self.typed_in_bash("headscope plot elsew"), "headscope plot elsewhere/")  # goes on without a space

    def typed_in_bash(self, text):
        """What is on the line after the tabulator is pressed."""
        start = self.home / "bashrc"
        start.write_text(f"""PS1=; source {shlex.quote(str(self.texts['bash']))}; bind 'set enable-bracketed-paste off'
report() {{ printf '<''<%s>''>' "$READLINE_LINE"; }}; bind -x '"\\C-g": report'; printf 'REA''DY'\n""")
        child, terminal = pty.fork()
        if child == 0:
            os.chdir(self.work)
            os.execvpe("bash", ["bash", "--noprofile", "--rcfile", str(start), "-i"], {**os.environ, "TERM": "dumb", "HOME": str(self.home)})
        try:
            said = self.read_until(terminal, b"READY")
            os.write(terminal, text.encode() + b"\t\x07")
            said = self.read_until(terminal, b">>").decode()
            return said[said.index("<<") + 2:said.index(">>")]
        finally:
            os.kill(child, signal.SIGKILL)
            os.waitpid(child, 0)
            os.close(terminal)

    def read_until(self, terminal, mark):
        said = b""
        while mark not in said:
            self.assertTrue(select.select([terminal], [], [], 60)[0], said)
            said += os.read(terminal, 4096)
        return said

    @unittest.skipUnless(shutil.which("fish"), "fish is not installed")
    def test_Fish(self):
        for words, answers in zip(self.CASES, self.ANSWERS):
            script = f"source {str(self.texts['fish'])!r}; complete -C 'headscope {' '.join(words)}'"
            result = subprocess.run(["fish", "--no-config", "-c", script], cwd=self.work, capture_output=True, text=True,
                                    env={**os.environ, "HOME": str(self.home)})
            self.assertEqual([line.split("\t")[0].replace("\\ ", " ") for line in result.stdout.splitlines()], answers, result.stderr)

    @unittest.skipUnless(shutil.which("zsh"), "zsh is not installed")
    def test_Zsh(self):
        # A terminal in which the tabulator is pressed, then what is on the line is printed.
        script = r"""zmodload zsh/zpty; zpty z zsh -f -i
        wait_for() { while zpty -r z line; do [[ $line == *${~1}* ]] && break; done }
        zpty -w z "PS1=; fpath=('$1' \$fpath); autoload -Uz compinit; compinit -u -D"
        zpty -w z "report() { print -r -- \"<\"\"<\$BUFFER>\"\">\"; BUFFER= }; zle -N report; bindkey '^X' report; print READ''Y"
        wait_for READY
        zpty -n -w z "headscope $2"$'\t'$'\x18'
        wait_for '<<*>>'
        print -r -- "${${line#*<<}%>>*}"
        zpty -d z"""
        for words, answers in zip(self.CASES, self.ANSWERS):
            result = subprocess.run(["zsh", "-fc", script, "zsh", self.home, " ".join(words)], cwd=self.work, capture_output=True, text=True,
                                    timeout=60, env={**os.environ, "HOME": str(self.home), "TERM": "dumb"})
            typed = " ".join(["headscope", *words[:-1], answers[0].replace(" ", "\\ ")])
            self.assertEqual(result.stdout.strip(), typed, result.stderr)


if __name__ == "__main__":
    PROGRAM = Path(sys.argv.pop(1)).resolve()
    unittest.main()
