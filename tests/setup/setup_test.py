"""The wrapper and scripts/bootstrap, in a clone of their own where every tool that installs or builds is a stub.

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
TOOLS = """bash cat chmod cut dirname env flock grep mkdir mktemp mv paste readlink realpath rm sed sha256sum sort tail
touch uname""".split()
PACKAGES = """fonts-dejavu-core libcli11-dev libeigen3-dev libfmt-dev libxxhash-dev libyaml-cpp-dev
nlohmann-json3-dev""".split()
PROGRAMS = ["g++", "gnuplot"]


class Setup(unittest.TestCase):
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
        (self.bin / "sudo").unlink()
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

    # -- packages -----------------------------------------------------------------------------------------------------

    def test_AllInstalled_TouchesNeitherAptNorPip(self):
        self.assertEqual(self.bootstrap()[0], 0)
        fetched = self.calls("pip")
        self.assertEqual(self.bootstrap(), (0, "", ""))
        self.assertEqual(self.calls("pip"), fetched)
        self.assertEqual(self.calls("apt-get"), [])

    def test_Root_InstallsOnlyWhatIsMissing(self):
        self.write_packages(PACKAGES[2:])
        code, output, errors = self.bootstrap()
        self.assertEqual((code, output), (0, ""))
        self.assertIn("headscope: installing Debian packages: fonts-dejavu-core libcli11-dev\n", errors)
        self.assertTrue(self.calls("apt-get")[-1].endswith("--no-install-recommends fonts-dejavu-core libcli11-dev"))

    def test_NeitherRootNorSudo_PrintsTheLineToRun(self):
        self.write_packages(PACKAGES[1:])
        code, output, errors = self.bootstrap(USER_ID=1000)
        self.assertEqual((code, output), (2, ""))
        line = "apt-get update && apt-get install -y --no-install-recommends fonts-dejavu-core"
        self.assertEqual(errors, f"headscope: Debian packages are missing; run as root: {line}\n")
        self.assertEqual(self.calls("apt-get"), [])

    def test_SudoThatNeedsAPasswordWithoutATerminal_PrintsTheLineToRun(self):
        shutil.copy2(STUBS / "sudo", self.bin)
        self.write_packages([])
        code, _, errors = self.bootstrap(USER_ID=1000, SUDO_REFUSES="yes")
        self.assertEqual(code, 2)
        self.assertIn("run as root: apt-get update && ", errors)
        self.assertEqual(self.calls("apt-get"), [])

    def test_Sudo_IsUsed(self):
        shutil.copy2(STUBS / "sudo", self.bin)
        self.write_packages(PACKAGES[1:])
        self.assertEqual(self.bootstrap(USER_ID=1000)[0], 0)
        self.assertTrue(any("apt-get" in call and "fonts-dejavu-core" in call for call in self.calls("sudo")))

    def test_Tests_NeedTheirPackages(self):
        code, output, _ = self.bootstrap("--with", "tests", "--print")
        self.assertEqual(code, 0)
        packages = output.splitlines()[0].split("--no-install-recommends ")[1].split()
        self.assertEqual(packages, ["ccache", "clang", "libbenchmark-dev", "libgmock-dev", "libgtest-dev", "strace"])
        self.assertEqual(self.calls("apt-get") + self.calls("pip"), [])

    def test_PythonWithoutPip_NeedsItOnlyForAWheelThatIsMissing(self):
        without_pip = {"STUB_HAS_PIP": "no", "HEADSCOPE_PYTHON": self.bin / "python3"}
        self.assertIn("python3-pip", self.bootstrap("--print", **without_pip)[1])
        self.assertEqual(self.bootstrap()[0], 0)
        self.assertIn("packages: all installed", self.bootstrap("--print", **without_pip)[1])

    def test_NotDebian_SaysWhatIsNeeded(self):
        (self.bin / "dpkg-query").unlink()
        code, output, errors = self.bootstrap()
        self.assertEqual((code, output, errors.count("\n")), (2, "", 1))
        self.assertIn("libyaml-cpp-dev", errors)
        self.assertEqual(self.bootstrap(HEADSCOPE_NO_APT=1)[0], 0)

    def test_OldCMake_IsNamed(self):
        code, _, errors = self.bootstrap(CMAKE_VERSION="3.18.4")
        self.assertEqual(code, 2)
        self.assertEqual(errors, f"headscope: CMake 3.22 or newer is needed; {self.bin}/cmake is 3.18.4\n")

    # -- wheels -------------------------------------------------------------------------------------------------------

    def test_Pip_GetsTheLockFileAndOnlySettingsOfWhereToDownloadFrom(self):
        how = {"PIP_USER": 1, "PIP_TARGET": "/nowhere", "PIP_REQUIRE_VIRTUALENV": 1, "PYTHONPATH": "/nowhere"}
        self.assertEqual(self.bootstrap(PIP_INDEX_URL="file:///index", **how)[0], 0)
        (call,) = self.calls("pip")
        self.assertIn("-I -m pip", call)  # -I: without PYTHONPATH
        self.assertIn(f"--require-hashes --no-deps --only-binary=:all: --no-compile -r {self.clone}/lock/build.txt", call)
        self.assertEqual(
            (self.home / "pip-environment").read_text().split(),
            ["PIP_INDEX_URL=file:///index", "PIP_REQUIRE_VIRTUALENV=0", "PIP_ROOT_USER_ACTION=ignore", "PIP_USER=0"],
        )

    def test_TwoInstallsAtOnce_MakeOneFolder(self):
        gate = self.gate()
        first = self.start(self.clone / "scripts/bootstrap", GATE=gate)
        with open(gate, "w") as opened:  # returns when the first pip is half-way
            second = self.start(self.clone / "scripts/bootstrap", GATE=gate)
            self.assertIn("waiting for another process: fetching pyarrow", second.stderr.readline())
            opened.write("go on\n")
        self.assertEqual((first.wait(60), second.wait(60)), (0, 0))
        self.assertEqual(len(self.calls("pip")), 1)
        self.assertEqual(self.cached(), ["build"])

    def test_KilledInstall_IsSweptAndDoneAgain(self):
        gate = self.gate()
        killed = self.start(self.clone / "scripts/bootstrap", GATE=gate)
        with open(gate, "w"):
            os.killpg(killed.pid, signal.SIGKILL)
            killed.wait(60)
        (left_over,) = self.cached()
        self.assertTrue(left_over.startswith("build.partial."))
        self.assertEqual(self.bootstrap()[0], 0)
        self.assertEqual(self.cached(), ["build"])
        self.assertEqual(len(self.calls("pip")), 2)

    def test_InterruptedInstall_LeavesNothing(self):
        gate = self.gate()
        process = self.start(self.clone / "scripts/bootstrap", GATE=gate)
        with open(gate, "w"):
            os.killpg(process.pid, signal.SIGINT)
            self.assertEqual(process.wait(60), 130)
        self.assertEqual(self.cached(), [])

    def test_AnotherLockFile_IsAnotherFolder(self):
        self.assertEqual(self.bootstrap()[0], 0)
        with open(self.clone / "lock/build.txt", "a") as lock:
            lock.write("# changed\n")
        self.assertEqual(self.bootstrap()[0], 0)
        self.assertEqual(self.cached(), ["build", "build"])

    # -- the wrapper --------------------------------------------------------------------------------------------------

    def test_Headscope_InstallsBuildsAndRunsWithTheSameArguments(self):
        code, output, errors = self.headscope("plasticity", "a b", "")
        self.assertEqual((code, output), (0, "<plasticity><a b><>"))
        self.assertEqual(
            errors.splitlines(),
            ["headscope: fetching pyarrow==23.0.1", "headscope: building (first time: some minutes)"],
        )
        (configured,) = self.calls("cmake")
        self.assertIn("-DHEADSCOPE_TESTS=OFF", configured)
        self.assertEqual(self.calls("ninja"), [f"ninja -C {self.clone}/build/release headscope_program"])

    def test_Headscope_SecondRunOnlyAsksNinja(self):
        self.headscope()
        (self.home / "calls").unlink()
        self.assertEqual(self.headscope("x")[:2], (0, "<x>"))
        self.assertEqual((self.home / "calls").read_text().splitlines(), self.calls("ninja"))

    def test_Headscope_ThroughASymlink(self):
        link = self.home / "a link"
        link.symlink_to(self.clone / "headscope")
        self.assertEqual(self.run_script(link, "x")[:2], (0, "<x>"))

    def test_Headscope_FailedBuildShowsTheErrorAndRunsNothing(self):
        code, output, errors = self.headscope(BREAK_BUILD=1)
        self.assertEqual((code, output), (1, ""))
        self.assertIn("FAILED: bad.cpp.o\nbad.cpp:1: error: no\n", errors)
        self.assertNotIn("good.cpp", errors)
        self.assertEqual(self.headscope("x")[:2], (0, "<x>"))

    def test_Headscope_TwoAtOnceBuildOneAfterTheOther(self):
        self.bootstrap()
        gate = self.gate()
        first = self.start(self.clone / "headscope", "1", GATE=gate)
        with open(gate, "w") as opened:
            second = self.start(self.clone / "headscope", "2", GATE=gate)
            self.assertIn("waiting for another process: building in", second.stderr.readline())
            opened.write("go on\n")
        self.assertEqual((first.communicate(timeout=60)[0], second.communicate(timeout=60)[0]), ("<1>", "<2>"))

    def test_Headscope_InterruptedBuildIsNotCalledAFailure(self):
        self.bootstrap()
        gate = self.gate()
        process = self.start(self.clone / "headscope", GATE=gate)
        with open(gate, "w"):
            os.killpg(process.pid, signal.SIGINT)
            output, errors = process.communicate(timeout=60)
        self.assertEqual((process.returncode, output), (130, ""))
        self.assertNotIn("fail", errors)

    def test_Headscope_KeepsTheTestsThatScriptsTestConfigured(self):
        release = self.clone / "build/release"
        release.mkdir(parents=True)
        (release / "CMakeCache.txt").write_text(f"CMAKE_HOME_DIRECTORY:INTERNAL={self.clone}\n")
        self.assertEqual(self.headscope()[0], 0)
        self.assertNotIn("HEADSCOPE_TESTS", self.calls("cmake")[0])

    def test_Headscope_MovedCloneIsConfiguredAfresh(self):
        self.headscope()
        moved = self.clone.rename(self.home / "a moved clone")
        code, output, _ = self.run_script(moved / "headscope", "x")
        self.assertEqual((code, output), (0, "<x>"))
        self.assertIn("-DHEADSCOPE_TESTS=OFF", self.calls("cmake")[1])
        self.assertTrue(self.calls("ninja")[1].startswith(f"ninja -C {moved}/build/release"))

    def test_Headscope_UsesThePyarrowThatItIsGiven(self):
        own = self.home / "my own" / "pyarrow"
        (own / "include/parquet/api").mkdir(parents=True)
        (own / "include/parquet/api/reader.h").touch()
        self.assertEqual(self.headscope(HEADSCOPE_PYARROW=own)[0], 0)
        self.assertEqual(self.calls("pip"), [])
        self.assertIn(f"-DHEADSCOPE_PYARROW={own}", self.calls("cmake")[0])

    def test_Headscope_RefusesAPyarrowWithoutHeaders(self):
        code, output, errors = self.headscope(HEADSCOPE_PYARROW=self.home)
        self.assertEqual((code, output), (2, ""))
        self.assertIn(f"no parquet/api/reader.h in {self.home}/include", errors)

    def test_Headscope_FetchesTorchUnlessItIsGiven(self):
        self.assertEqual(self.headscope()[0], 0)
        self.assertIn(f"-DHEADSCOPE_TORCH={self.torch}", self.calls("cmake")[0])
        self.assertEqual(self.cached(), ["build"])
        self.assertEqual(self.headscope(HEADSCOPE_TORCH="")[0], 0)
        self.assertIn(f"-DHEADSCOPE_TORCH={self.cache}/torch-", self.calls("cmake")[1])
        self.assertEqual(self.cached(), ["build", "torch"])

    def test_Headscope_RefusesATorchWithoutHeaders(self):
        code, output, errors = self.headscope(HEADSCOPE_TORCH=self.home)
        self.assertEqual((code, output), (2, ""))
        self.assertIn(f"no ATen/ATen.h in {self.home}/include", errors)


if __name__ == "__main__":
    unittest.main()
