"""The whole set-up as an ordinary user in an empty home: user_test.py TORCH.

Root makes the smallest Debian or Ubuntu that apt-get works in, in a folder, and enters it as a user who is nobody. There is no
compiler, CMake or Python in it. scripts/bootstrap fetches packages and the Arrow wheel; then CMake configures this project, and
builds and runs a small program that needs every package. TORCH, the folder of the installed torch, is lent: it is large, and
fetched in the same way as Arrow.

Skipped, with the reason, where root, namespaces or a package mirror are not to be had.
"""

import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
TORCH = None
USER = 61234  # no user of any system
NEEDED = ["apt-get", "apt-cache", "dpkg-deb", "unshare", "setpriv", "chroot", "mount"]
COPIED = ["headscope", "scripts", "lock", "cmake", "src", "apps", "web", "configs", "docs/measurements.md", "tests/setup", "CMakeLists.txt",
          "CMakePresets.json"]


class WithoutRoot(unittest.TestCase):
    def setUp(self):
        missing = [program for program in NEEDED if not shutil.which(program)]
        if missing:
            self.skipTest(f"not here: {' '.join(missing)}")
        if os.geteuid() != 0:
            self.skipTest("only root can become another user")
        if subprocess.run(["unshare", "--mount", "true"], capture_output=True).returncode != 0:
            self.skipTest("mount namespaces are not allowed here")
        temporary = tempfile.TemporaryDirectory(prefix="headscope user ")
        self.addCleanup(temporary.cleanup)
        self.folder = Path(temporary.name)
        self.folder.chmod(0o755)
        self.system = self.folder / "system"
        self.make_system()

    def make_system(self):
        """What every installation has, and apt with its keys; as files, without the packages' scripts."""
        for folder in ("lists/partial", "cache/archives/partial", "system/var/lib/dpkg"):
            (self.folder / folder).mkdir(parents=True)
        (self.folder / "status").touch()
        options = ["-o", f"Dir::State::lists={self.folder}/lists", "-o", f"Dir::Cache={self.folder}/cache", "-o", "Debug::NoLocking=1",
                   "-o", f"Dir::State::status={self.folder}/status", "-o", "APT::Sandbox::User=", "-o", "Acquire::Languages=none"]
        subprocess.run(["apt-get", *options, "update"], capture_output=True)
        available = subprocess.run(["apt-cache", *options, "dumpavail"], capture_output=True, text=True).stdout
        needed = [re.match(r"Package: (\S+)", entry)[1] for entry in available.split("\n\n")
                  if re.search(r"^(Essential: yes|Priority: required)$", entry, flags=re.MULTILINE)]
        keys = [name for name in ("debian-archive-keyring", "ubuntu-keyring") if f"\nPackage: {name}\n" in f"\n{available}"]
        if not needed or not keys:
            self.skipTest("no package mirror answers")
        fetched = subprocess.run(["apt-get", *options, "install", "-y", "--no-install-recommends", "--download-only", "apt", *keys,
                                  *sorted(set(needed))], capture_output=True, text=True)
        if fetched.returncode != 0:
            self.skipTest(f"apt-get could not fetch a bare system: {fetched.stderr.strip().splitlines()[-1]}")
        installed = []
        for archive in sorted((self.folder / "cache/archives").glob("*.deb")):
            subprocess.run(["dpkg-deb", "-x", archive, self.system], check=True)
            control = subprocess.run(["dpkg-deb", "-f", archive], capture_output=True, text=True, check=True).stdout
            installed.append(control.replace("\n", "\nStatus: install ok installed\n", 1))
        (self.system / "var/lib/dpkg/status").write_text("\n".join(installed))
        shutil.rmtree(self.folder / "cache")
        # Where to fetch from, as here.
        for path in ("etc/resolv.conf", "etc/hosts", "etc/pip.conf", "etc/ssl/certs/ca-certificates.crt"):
            if Path("/", path).exists():
                (self.system / path).parent.mkdir(parents=True, exist_ok=True)
                shutil.copyfile(Path("/", path), self.system / path)
        shutil.rmtree(self.system / "etc/apt")
        shutil.copytree("/etc/apt", self.system / "etc/apt", ignore=shutil.ignore_patterns("auth*"))
        (self.system / "etc/passwd").write_text(f"root:x:0:0::/root:/bin/bash\nuser:x:{USER}:{USER}::/home/user:/bin/bash\n")
        (self.system / "etc/group").write_text(f"root:x:0:\nuser:x:{USER}:\n")
        (self.system / "torch").mkdir()
        self.home = self.system / "home/user"
        self.clone = self.home / "it's a clone"
        for name in COPIED:
            source, target = ROOT / name, self.clone / name
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copytree(source, target) if source.is_dir() else shutil.copy2(source, target)
        subprocess.run(["chown", "-R", f"{USER}:{USER}", self.home], check=True)

    def as_user(self, command):
        """In the bare system, in the clone, with an environment as small as can be."""
        enter = """mount -t proc proc "$1/proc" && mount --bind /dev "$1/dev" && mount --bind "$2" "$1/torch" &&
            exec chroot "$1" /usr/bin/env -i "${@:5}" setpriv --reuid "$3" --regid "$3" --clear-groups --no-new-privs \\
            bash -c "cd ~/it*clone && $4" """
        kept = [f"{name}={value}" for name, value in os.environ.items() if re.fullmatch(r"(?i)(https?|no)_proxy|PIP_\w+", name)]
        result = subprocess.run(
            ["unshare", "--mount", "bash", "-c", enter, "-", self.system, TORCH, str(USER), command, "PATH=/usr/bin:/bin",
             "HOME=/home/user", "LC_ALL=C.UTF-8", "HEADSCOPE_TORCH=/torch", *kept],
            stdin=subprocess.DEVNULL, capture_output=True, text=True, cwd="/")
        self.assertEqual(result.returncode, 0, f"{command}\n{result.stdout}\n{result.stderr}")
        return result.stdout

    def test_SetUp_InAnEmptyHome(self):
        absent = self.as_user("id -u; type -P g++ gcc c++ cmake ninja gnuplot python3 || true")
        self.assertEqual(absent, f"{USER}\n")
        self.assertFalse((self.system / "usr/include/stdio.h").exists())
        self.as_user("scripts/bootstrap")
        plan = self.as_user("scripts/bootstrap --print")
        self.assertRegex(plan, r"packages: unpacked in /home/user/.cache/headscope/packages-[0-9a-f]{16}\n")
        self.assertNotIn("missing", plan)
        cached = [path.name for path in (self.home / ".cache/headscope").iterdir()]
        self.assertEqual([name for name in cached if "partial" in name], [])
        # This project, as ./headscope does it, and a small program against the same packages.
        self.as_user("""source scripts/lib/common.sh && install_all build torch && mkdir -p "$RELEASE" &&
            configure_release -DHEADSCOPE_TESTS=OFF && ninja -C "$RELEASE" web/report.js &&
            cmake -S "$ROOT/tests/setup/small" -B ~/small -G Ninja "-DHEADSCOPE_ROOT=$ROOT" "-DHEADSCOPE_PYARROW=$(pyarrow_folder)" &&
            ninja -C ~/small && ninja -C ~/small | tee ~/second.log""")
        self.assertIn("ninja: no work to do.", (self.home / "second.log").read_text())  # it can follow the headers
        said = json.loads(self.as_user("~/small/small --text '[1, 2, 3, 4]'"))  # without PATH or LD_LIBRARY_PATH: it finds its libraries
        self.assertEqual(said, {"determinant": -2.0, "hash": "44bc2cf5ad770999", "checksum": "352441c2", "arrow": "int64",
                                "pcre2": True, "lower": 0xE4})  # the hash is of xxHash's own tests
        self.as_user("""source scripts/lib/common.sh && install_all build torch && cd ~ && gnuplot -e '
            set terminal pngcairo font "DejaVu Sans,12"; set output "figure.png"; plot sin(x)' 2> gnuplot.log""")
        self.assertEqual((self.home / "figure.png").read_bytes()[:8], b"\x89PNG\r\n\x1a\n")
        self.assertEqual((self.home / "gnuplot.log").read_text(), "")


if __name__ == "__main__":
    TORCH = Path(sys.argv.pop(1)).resolve()
    unittest.main()
