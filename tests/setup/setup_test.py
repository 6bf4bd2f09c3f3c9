"""The wrapper and scripts/bootstrap, with stubs in the place of all that installs or builds."""

import os
import shutil
import signal
import subprocess
import time
import unittest
from pathlib import Path

from stub_clone import PACKAGES, ROOT, STUBS, StubClone


class Setup(StubClone):
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

    def unpacked(self):
        (folder,) = self.cache.glob("packages-*")
        return folder

    def test_NeitherRootNorSudo_UnpacksWhatIsMissing(self):
        self.write_packages(PACKAGES[1:])
        code, output, errors = self.bootstrap(USER_ID=1000)
        self.assertEqual((code, output), (0, ""))
        self.assertIn(f"headscope: not root: unpacking Debian packages into {self.cache}: fonts-dejavu-core\n", errors)
        folder = self.unpacked()
        self.assertTrue((folder / "usr/share/fonts-dejavu-core").is_dir())
        for call in self.calls("apt-get"):  # nothing of the system's is written to
            self.assertIn(f"-o Dir::State::lists={self.cache}/packages.partial.", call)
            self.assertIn(f"-o Dir::Cache={self.cache}/packages.partial.", call)
        self.assertEqual(self.cached(), ["build", "packages"])
        asked = self.calls("apt-get")
        self.assertEqual(self.bootstrap(USER_ID=1000)[0], 0)
        self.assertEqual(self.calls("apt-get"), asked)
        self.assertIn(f"packages: unpacked in {folder}\n", self.bootstrap("--print", USER_ID=1000)[1])

    def test_Unpacked_ProgramsFindTheirLibraries(self):
        self.write_packages(PACKAGES[1:])
        self.assertEqual(self.bootstrap(USER_ID=1000)[0], 0)
        library = self.unpacked() / "usr/lib/x86_64-linux-gnu"
        library.mkdir(parents=True)
        program = self.unpacked() / "usr/bin/fonts-dejavu-core"
        self.assertEqual(self.run_script(program)[1], f"fonts-dejavu-core of {library}\n")
        self.assertEqual(self.run_script(program, LD_LIBRARY_PATH="/mine")[1], f"fonts-dejavu-core of {library}:/mine\n")

    def test_Unpacked_IsWhatTheProgramIsBuiltAndRunWith(self):
        self.write_packages(PACKAGES[1:])
        for again in (False, True):  # the second time, nothing is looked for
            self.assertEqual(self.headscope("x", USER_ID=1000)[:2], (0, "<x>"))
            path = (self.home / "program-path").read_text().strip()
            self.assertEqual(path, f"{self.bin}:{self.unpacked()}/usr/bin")
        (configured,) = self.calls("cmake")
        self.assertIn(f"-DCMAKE_PREFIX_PATH={self.unpacked()}/usr", configured)

    def test_Unpacked_FolderThatIsGoneIsMadeAgain(self):
        self.write_packages(PACKAGES[1:])
        self.assertEqual(self.headscope("x", USER_ID=1000)[0], 0)
        folder = self.unpacked()
        shutil.rmtree(folder)
        self.assertEqual(self.headscope("x", USER_ID=1000)[:2], (0, "<x>"))
        self.assertEqual(self.unpacked(), folder)
        self.assertEqual(len(self.calls("cmake")), 2)

    def test_Unpacked_FolderWithMoreServesAgain(self):
        self.write_packages(PACKAGES[2:])
        self.assertEqual(self.bootstrap(USER_ID=1000)[0], 0)
        asked = self.calls("apt-get")
        self.write_packages(PACKAGES[1:])
        self.assertEqual(self.bootstrap(USER_ID=1000)[0], 0)
        self.assertEqual(self.calls("apt-get"), asked)
        self.write_packages([])
        self.assertEqual(self.bootstrap(USER_ID=1000)[0], 0)
        self.assertEqual(self.cached(), ["build", "packages", "packages"])

    def test_Unpacked_LinksAndLinkerScriptsLeadToWhatIsThere(self):
        (library,) = [path for path in Path("/usr/lib").glob("*-linux-gnu/libstdc++.so.6")]  # of this system, a link to the file
        real = library.readlink().name
        root = self.home / "root"
        folder = root / str(library.parent)[1:]
        folder.mkdir(parents=True)
        (folder / "libstdc++.so").symlink_to(library.name)
        (folder / "libnowhere.so").symlink_to("libnowhere.so.1")
        (folder / "libown.so").symlink_to(library.parent / "own/libown.so.1")  # absolute, to a file of the packages
        (folder / "own").mkdir()
        (folder / "own/libown.so.1").write_text("own")
        (folder / "libc_nonshared.a").touch()
        (folder / "libc.so").write_text(f"GROUP ( /lib/libc.so.6 {library.parent}/libc_nonshared.a AS_NEEDED ( {library.parent}/libother.a ) )")
        joined = self.run_script("bash", "-c", 'source "$0/scripts/lib/common.sh"; join_with_system "$1"', self.clone, root)
        self.assertEqual(joined[0], 0, joined)
        root = root.rename(self.home / "moved root")  # the folder is renamed when it is complete
        folder = root / str(library.parent)[1:]
        for name in ("libstdc++.so", library.name, real):  # CMake's files name the last
            self.assertEqual((folder / name).resolve(), library.resolve(), name)
        self.assertEqual((folder / "libown.so").read_text(), "own")
        self.assertEqual((folder / "libc.so").read_text(),
                         f"GROUP ( /lib/libc.so.6 libc_nonshared.a AS_NEEDED ( {library.parent}/libother.a ) )")

    def test_SudoThatNeedsAPassword_IsNotUsed(self):
        shutil.copy2(STUBS / "sudo", self.bin)
        self.write_packages([])
        self.assertEqual(self.bootstrap(USER_ID=1000, SUDO_REFUSES="yes")[0], 0)
        self.assertEqual(self.calls("sudo"), ["sudo -n true"])
        self.assertEqual(self.cached(), ["build", "packages"])

    def test_ListsThatCannotBeFetched_AreOneLineAndLeaveNothing(self):
        self.write_packages(PACKAGES[1:])
        code, output, errors = self.headscope("x", USER_ID=1000, OFFLINE=1)
        self.assertEqual((code, output), (1, ""))
        self.assertEqual(len(errors.splitlines()), 2, errors)  # what it is doing, and why it stops
        self.assertIn("headscope: apt-get could not fetch the package lists (Failed to fetch the list); ", errors)
        self.assertIn("apt-get install -y --no-install-recommends fonts-dejavu-core\n", errors)
        self.assertEqual(self.cached(), [])
        self.assertEqual(self.headscope("x", USER_ID=1000)[:2], (0, "<x>"))

    def test_PackageThatIsNotThere_IsOneLineAndLeavesNothing(self):
        self.write_packages([])
        code, _, errors = self.bootstrap(USER_ID=1000, NO_PACKAGE="libcli11-dev")
        self.assertEqual((code, len(errors.splitlines())), (1, 2), errors)
        self.assertIn("apt-get could not fetch the packages (Unable to locate package libcli11-dev); ", errors)
        self.assertEqual(self.cached(), [])

    def test_TwoUnpackAtOnce_MakeOneFolder(self):
        self.write_packages(PACKAGES[1:])
        gate = self.gate()
        first = self.start(self.clone / "scripts/bootstrap", APT_GATE=gate, USER_ID=1000)
        with open(gate, "w") as opened:
            second = self.start(self.clone / "scripts/bootstrap", USER_ID=1000)
            self.assertIn("waiting for another process: installing Debian packages", second.stderr.readline())
            opened.write("go on\n")
        self.assertEqual((first.wait(60), second.wait(60)), (0, 0))
        self.assertEqual(len([call for call in self.calls("apt-get") if "--download-only" in call]), 1)
        self.assertEqual(self.cached(), ["build", "packages"])

    def test_InterruptedUnpack_LeavesNothing(self):
        self.write_packages(PACKAGES[1:])
        gate = self.gate()
        process = self.start(self.clone / "scripts/bootstrap", APT_GATE=gate, USER_ID=1000)
        with open(gate, "w"):
            os.killpg(process.pid, signal.SIGINT)
            self.assertEqual(process.wait(60), 130)
        self.assertEqual(self.cached(), [])

    def test_KilledUnpack_IsSweptAndDoneAgain(self):
        self.write_packages(PACKAGES[1:])
        gate = self.gate()
        killed = self.start(self.clone / "scripts/bootstrap", APT_GATE=gate, USER_ID=1000)
        with open(gate, "w"):
            os.killpg(killed.pid, signal.SIGKILL)
            killed.wait(60)
        (left_over,) = self.cached()
        self.assertTrue(left_over.startswith("packages.partial."))
        self.assertEqual(self.bootstrap(USER_ID=1000)[0], 0)
        self.assertEqual(self.cached(), ["build", "packages"])

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

    def test_NotDebian_SaysWhatIsNeededInOneLine(self):
        (self.bin / "dpkg-query").unlink()
        code, output, errors = self.bootstrap()
        self.assertEqual((code, output, errors.count("\n")), (2, "", 1))
        listed = [line.split() for line in (ROOT / "lock/debian.txt").read_text().splitlines() if line.startswith("build ")]
        for _, package, *program in listed:  # every one is named, but for the fonts by their Debian name
            self.assertIn((program or ["fonts" if package.startswith("fonts-") else package])[0], errors)
        for setting in ("HEADSCOPE_NO_APT=1", "CMAKE_PREFIX_PATH=", "HEADSCOPE_PYTHON", "Python 3.10 to 3.13"):
            self.assertIn(setting, errors)
        self.assertEqual(self.bootstrap(HEADSCOPE_NO_APT=1)[0], 0)

    def test_NotDebian_NamesAProgramThatIsNotThere(self):
        (self.bin / "dpkg-query").unlink()
        (self.bin / "gnuplot").unlink()
        code, _, errors = self.bootstrap(HEADSCOPE_NO_APT=1)
        self.assertEqual((code, errors), (2, "headscope: not on PATH: gnuplot; HEADSCOPE_NO_APT is set, so nothing is installed\n"))

    def test_CacheThatCannotBeWritten_IsNamed(self):
        (self.home / "a file").touch()
        for cache in (self.home / "a file", "/proc"):
            code, output, errors = self.headscope("x", XDG_CACHE_HOME=cache)
            self.assertEqual((code, output), (2, ""))
            self.assertEqual(errors, f"headscope: cannot write to the cache folder {cache}/headscope; "
                                     "name another place with XDG_CACHE_HOME=DIR\n")

    def test_WithoutHome_TheCacheFolderServes(self):
        for home in ({"HOME": ""}, {}):
            environment = {name: value for name, value in self.environment.items() if name != "HOME"}
            result = subprocess.run([self.clone / "headscope", "x"], env={**environment, **home}, capture_output=True, text=True)
            self.assertEqual((result.returncode, result.stdout), (0, "<x>"), result.stderr)

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

    def test_Headscope_PathThatNinjaCannotReadIsBuiltThroughALink(self):
        self.clone = self.clone.rename(self.home / "it's a \"clone\" for $1; really")
        self.assertEqual(self.headscope("x")[:2], (0, "<x>"))
        self.assertEqual(self.headscope("y")[:2], (0, "<y>"))
        (link,) = (self.cache / "checkouts").iterdir()
        self.assertEqual(link.resolve(), self.clone)
        self.assertEqual(self.calls("ninja"), [f"ninja -C {link}/build/release headscope_program"] * 2)
        self.assertEqual(len(self.calls("cmake")), 1)

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

    # -- on a machine with a GPU --------------------------------------------------------------------------------------

    def nvidia_smi(self):
        shutil.copy2(STUBS / "nvidia-smi", self.bin)

    def test_Gpu_InstallsBuildsAndRunsTheProgramForIt(self):
        self.nvidia_smi()
        code, output, errors = self.headscope("train", "a b", HEADSCOPE_TORCH="")
        self.assertEqual((code, output), (0, "on a GPU: <train><a b>"), errors)
        self.assertEqual(self.cached(), ["build", "cuda", "gpu", "torch"])
        (configured,) = self.calls("cmake")
        (compiler,), (libraries,) = self.cache.glob("cuda-*"), self.cache.glob("gpu-*")
        for setting in ("--preset cuda ", "-DHEADSCOPE_TESTS=OFF", f"-DHEADSCOPE_NVCC={compiler}/nvidia/cu13/bin/nvcc",
                        f"-DHEADSCOPE_GPU_LIBRARIES={libraries}", f"-DHEADSCOPE_TORCH={self.cache}/torch-"):
            self.assertIn(setting, configured)
        self.assertEqual(self.calls("ninja"), [f"ninja -C {self.clone}/build/cuda headscope_gpu"])
        fetched = [line for line in errors.splitlines() if "fetching" in line]
        self.assertEqual(len(fetched), 4, errors)
        for package in ("nvidia-cuda-nvcc==", "nvidia-cublas==", "nvidia-cudnn-cu13==", "nvidia-nccl-cu13=="):
            self.assertIn(package, errors)
        self.assertIn("headscope: building (first time: some minutes)\n", errors)

    def test_Gpu_SecondRunAsksTheDriverAndNinja(self):
        self.nvidia_smi()
        self.headscope(HEADSCOPE_TORCH="")
        (self.home / "calls").unlink()
        self.assertEqual(self.headscope("x", HEADSCOPE_TORCH=""), (0, "on a GPU: <x>", ""))
        self.assertEqual((self.home / "calls").read_text().splitlines(), self.calls("nvidia-smi") + self.calls("ninja"))
        self.assertEqual(self.calls("nvidia-smi"), ["nvidia-smi -L"])

    def test_NoGpu_NothingForItIsFetched(self):
        self.assertEqual(self.headscope("x", HEADSCOPE_TORCH="")[:2], (0, "<x>"))  # no nvidia-smi
        self.nvidia_smi()
        for reason in ("NO_DRIVER", "NO_GPU", "BROKEN_GPU"):
            self.assertEqual(self.headscope("x", HEADSCOPE_TORCH="", **{reason: 1}), (0, "<x>", ""))
        self.assertEqual(self.cached(), ["build", "torch"])
        self.assertEqual(len(self.calls("cmake")), 1)
        self.assertFalse((self.clone / "build/cuda").exists())

    def test_Gpu_DriverThatHangs_IsNotWaitedFor(self):
        self.headscope("x", HEADSCOPE_TORCH="")
        self.nvidia_smi()
        answer = self.headscope("x", HEADSCOPE_TORCH="", HANGS="end", HEADSCOPE_GPU_SECONDS=1)
        self.assertEqual(answer, (0, "<x>", "headscope: nvidia-smi gave no answer in 1 s: using the CPU "
                                            "(HEADSCOPE_CUDA=0 does not ask, =1 uses the GPU)\n"))
        begin = time.monotonic()
        self.assertEqual(self.headscope("x", HEADSCOPE_TORCH="", HANGS="child")[:2], (0, "on a GPU: <x>"))
        self.assertLess(time.monotonic() - begin, 30)

    def test_Gpu_CheckoutThatCannotBeWritten_SaysWhatRuns(self):
        self.headscope("x", HEADSCOPE_TORCH="")
        self.nvidia_smi()
        place = self.clone / "build/cuda"
        place.touch()  # no folder, for root neither
        self.assertEqual(self.headscope("x", HEADSCOPE_TORCH=""), (
            0, "<x>", f"headscope: using the CPU: the program for GPUs cannot be built here (cannot write to {place})\n"))
        self.assertEqual(self.headscope("x", HEADSCOPE_TORCH="", HEADSCOPE_CUDA=1), (
            2, "", f"headscope: HEADSCOPE_CUDA=1: cannot write to {place}, where the program for GPUs is built\n"))
        self.assertEqual(self.headscope("x", HEADSCOPE_TORCH="", HEADSCOPE_CUDA=0), (0, "<x>", ""))

    def test_Gpu_WhenItIsGoneTheOtherProgramRuns(self):
        self.nvidia_smi()
        self.assertEqual(self.headscope("x", HEADSCOPE_TORCH="")[1], "on a GPU: <x>")
        self.assertEqual(self.headscope("x", HEADSCOPE_TORCH="", NO_DRIVER=1)[:2], (0, "<x>"))
        self.assertEqual(self.headscope("x", HEADSCOPE_TORCH=""), (0, "on a GPU: <x>", ""))
        self.assertEqual(len(self.calls("cmake")), 2)  # each is configured once

    def test_Gpu_TheEnvironmentDecides(self):
        self.nvidia_smi()
        self.assertEqual(self.headscope("x", HEADSCOPE_TORCH="", HEADSCOPE_CUDA=0)[:2], (0, "<x>"))
        self.assertEqual(self.cached(), ["build", "torch"])
        (self.bin / "nvidia-smi").unlink()
        self.assertEqual(self.headscope("x", HEADSCOPE_TORCH="", HEADSCOPE_CUDA=1)[:2], (0, "on a GPU: <x>"))
        code, output, errors = self.headscope("x", HEADSCOPE_CUDA="yes")
        self.assertEqual((code, output, errors.count("\n")), (2, "", 1))
        self.assertIn("HEADSCOPE_CUDA=yes is neither 0", errors)

    def test_Gpu_LibrariesThatAreGoneAreFetchedAgain(self):
        self.nvidia_smi()
        self.headscope(HEADSCOPE_TORCH="")
        (libraries,) = self.cache.glob("gpu-*")
        shutil.rmtree(libraries)
        self.assertEqual(self.headscope("x", HEADSCOPE_TORCH="")[:2], (0, "on a GPU: <x>"))
        self.assertTrue(libraries.is_dir())

    def test_Gpu_AnotherLockFileIsInstalledAndConfigured(self):
        self.nvidia_smi()
        self.headscope(HEADSCOPE_TORCH="")
        with open(self.clone / "lock/gpu.txt", "a") as lock:
            lock.write("# changed\n")
        self.assertEqual(self.headscope("x", HEADSCOPE_TORCH="")[:2], (0, "on a GPU: <x>"))
        self.assertEqual(self.cached().count("gpu"), 2)
        self.assertEqual(len(self.calls("cmake")), 2)

    def test_Gpu_TorchThatIsGivenBringsItsOwnLibraries(self):
        self.nvidia_smi()
        self.assertEqual(self.headscope("x")[:2], (0, "<x>"))  # it is one for CPUs
        code, _, errors = self.headscope("x", HEADSCOPE_CUDA=1)
        self.assertEqual((code, errors), (2, f"headscope: HEADSCOPE_CUDA=1: HEADSCOPE_TORCH={self.torch} is not a torch for CUDA 13\n"))
        for file in (self.torch / "lib/libtorch_cuda.so", self.torch.parent / "nvidia/cu13/lib/libcudart.so.13"):
            file.parent.mkdir(parents=True)
            file.touch()
        self.assertEqual(self.headscope("x")[:2], (0, "on a GPU: <x>"))
        self.assertEqual(self.cached(), ["build", "cuda"])

    def test_Gpu_WheelsThatCannotBeFetched_SayHowToDoWithout(self):
        self.nvidia_smi()
        code, output, errors = self.headscope("x", HEADSCOPE_TORCH="", NO_WHEELS="gpu.txt")
        self.assertEqual((code, output), (1, ""))
        self.assertEqual(errors.splitlines()[-1],
                         "headscope: pip could not install lock/gpu.txt; HEADSCOPE_CUDA=0 uses the CPU and does without")
        self.assertEqual(self.cached(), ["build", "cuda", "torch"])


if __name__ == "__main__":
    unittest.main()
