"""The order of the folders of src is enforced: an include of a folder above, or of torch in the half without it, is refused.

A small tree with one planted include each is given to cmake/CheckIncludes.cmake, which the build runs for every folder.
"""

from __future__ import annotations

import subprocess
import tempfile
import unittest
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


class Includes(unittest.TestCase):
    def check(self, line: str, torch: bool = False) -> subprocess.CompletedProcess[str]:
        """Of the folder `heads`, which may include `core`; `train` is above it."""
        with tempfile.TemporaryDirectory() as scratch:
            root = Path(scratch)
            for folder in ("core", "heads", "train"):
                (root / "src" / folder).mkdir(parents=True)
            (root / "src" / "heads" / "inner").mkdir()
            (root / "src" / "heads" / "inner" / "planted.h").write_text(f"#pragma once\n\n{line}\n")
            result = subprocess.run(
                ["cmake", f"-DROOT={root}", "-DNAME=heads", "-DALLOWED=heads,core", f"-DTORCH={torch}", f"-DSTAMP={root}/stamp",
                 "-P", ROOT / "cmake" / "CheckIncludes.cmake"], capture_output=True, text=True)
            self.assertEqual((root / "stamp").exists(), result.returncode == 0)
            return result

    def test_what_is_below_and_the_system_are_taken(self) -> None:
        for line in ('#include "core/error.h"', '#include "heads/inner/planted.h"', "#include <vector>", "#include <sys/stat.h>",
                     "#include <nlohmann/json.hpp>", "// #include <ATen/ATen.h>"):
            self.assertEqual(self.check(line).returncode, 0, line)
        self.assertEqual(self.check("#include <ATen/ATen.h>", torch=True).returncode, 0)

    def test_a_folder_above_is_refused(self) -> None:
        for line in ('#include "train/loop.h"', "#include <train/loop.h>", '  #  include "train/loop.h"', '#include "../../train/loop.h"',
                     '#include "core/../train/loop.h"', "#include LOOP",
                     '#include "core/x.h"  // [ a bracket\n#include "train/loop.h"', '/**/ #include "train/loop.h"'):
            result = self.check(line)
            self.assertNotEqual(result.returncode, 0, line)
            self.assertIn("src/heads/inner/planted.h", result.stderr)

    def test_torch_is_refused_in_the_half_without_it(self) -> None:
        for line in ("#include <ATen/ATen.h>", "#include <torch/torch.h>", '#include "c10/core/Device.h"'):
            self.assertIn("half without torch", " ".join(self.check(line).stderr.split()), line)

    def test_every_folder_is_checked(self) -> None:
        listed = (ROOT / "CMakeLists.txt").read_text()
        for folder in (ROOT / "src").iterdir():
            if folder.is_dir():
                self.assertIn(f"headscope_folder({folder.name} ", listed)


if __name__ == "__main__":
    unittest.main()
