"""A clone of its own where every tool that installs or builds is a stub.

No network, no root. Processes that must overlap meet at a named pipe (GATE): the tests wait for events, not for time.
"""

import os
import shutil
import signal
import subprocess
import tempfile
import unittest
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
STUBS = Path(__file__).resolve().parent / "stubs"
# What the scripts may use of the system; all else, such as sudo or clang, is there only if a test says so.
TOOLS = """basename bash cat chmod cp cut dirname env find flock grep ln mkdir mktemp mv paste readlink realpath rm rmdir sed
sha256sum sleep sort tail timeout touch uname""".split()
PACKAGES = """fonts-dejavu-core libcli11-dev libeigen3-dev libfmt-dev libpcre2-dev libutf8proc-dev libxxhash-dev libyaml-cpp-dev
nlohmann-json3-dev node-d3-array zlib1g-dev""".split()
PROGRAMS = ["g++", "esbuild", "gnuplot", "tsc"]


class StubClone(unittest.TestCase):
    def setUp(self):
        # Opening a gate to which nobody comes would wait for ever.
        signal.signal(signal.SIGALRM, lambda *_: self.fail("still waiting after a minute"))
        signal.alarm(60)
        self.addCleanup(signal.alarm, 0)
        temporary = tempfile.TemporaryDirectory(prefix="headscope setup ")
        self.addCleanup(temporary.cleanup)
        self.home = Path(temporary.name).resolve()
        self.clone = self.home / "a clone"
        self.cache = self.home / "a cache" / "headscope"
        self.bin = self.home / "bin"
        for folder in (self.clone, self.bin, self.cache.parent):
            folder.mkdir()
        shutil.copy2(ROOT / "headscope", self.clone)
        for folder in ("scripts", "lock"):
            shutil.copytree(ROOT / folder, self.clone / folder)
        for tool in TOOLS:
            (self.bin / tool).symlink_to(shutil.which(tool))
        for stub in STUBS.iterdir():
            shutil.copy2(stub, self.bin)
        for program in PROGRAMS:
            shutil.copy2(self.bin / "id", self.bin / program)
        for program in ("sudo", "nvidia-smi"):
            (self.bin / program).unlink()
        self.write_packages(PACKAGES)
        self.torch = self.home / "my own" / "torch"
        (self.torch / "include/ATen").mkdir(parents=True)
        (self.torch / "include/ATen/ATen.h").touch()
        self.environment = {
            "PATH": str(self.bin),
            "HOME": str(self.home),
            "STATE": str(self.home),
            "XDG_CACHE_HOME": str(self.cache.parent),
            "HEADSCOPE_TORCH": str(self.torch),  # so that there is one wheel to fetch, unless a test says otherwise
        }

    # -- what the tests say -------------------------------------------------------------------------------------------

    def write_packages(self, names):
        (self.home / "packages").write_text("".join(f"{name}\n" for name in names))

    def start(self, *command, cwd=None, **environment):
        process = subprocess.Popen(
            [str(part) for part in command],
            cwd=cwd or "/",
            env={**self.environment, **{name: str(value) for name, value in environment.items()}},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
            # Wherever this test runs, the interrupt that some tests send must not be ignored.
            preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
        )
        self.addCleanup(self.reap, process)
        return process

    @staticmethod
    def reap(process):
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()
        process.stdout.close()
        process.stderr.close()

    def run_script(self, *command, **environment):
        process = self.start(*command, **environment)
        output, errors = process.communicate(timeout=60)
        return process.returncode, output, errors

    def bootstrap(self, *arguments, **environment):
        return self.run_script(self.clone / "scripts/bootstrap", *arguments, **environment)

    def headscope(self, *arguments, **environment):
        return self.run_script(self.clone / "headscope", *arguments, **environment)

    def calls(self, program):
        """What was asked of a stub; the answer forgets nothing, so a test may compare before and after."""
        path = self.home / "calls"
        lines = path.read_text().splitlines() if path.exists() else []
        return [line for line in lines if line.split()[0] == program]

    def gate(self):
        path = self.home / "gate"
        os.mkfifo(path)
        return path

    def cached(self):
        return sorted(path.name.split("-")[0] for path in self.cache.iterdir() if path.suffix != ".lock")
