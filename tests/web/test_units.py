"""The parts of web/ that need no browser: their types (tsc) and their tests (node), both from Debian."""
import pathlib
import shutil
import subprocess
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]


class Units(unittest.TestCase):
    @unittest.skipUnless(shutil.which("tsc"), "tsc is missing (node-typescript)")
    def test_Types_AreRight(self):
        done = subprocess.run(["tsc", "-p", str(ROOT / "web")], capture_output=True, text=True)
        self.assertEqual(done.returncode, 0, done.stdout)

    @unittest.skipUnless(shutil.which("node") and shutil.which("esbuild"), "node or esbuild is missing")
    def test_Units_Pass(self):
        tests = sorted(str(path) for path in (ROOT / "web/tests").glob("*.test.ts"))
        with tempfile.TemporaryDirectory() as folder:
            subprocess.run(["esbuild", *tests, "--bundle", "--platform=node", "--target=node18", "--log-level=warning", f"--outdir={folder}"],
                           check=True)
            done = subprocess.run(["node", "--test", folder], capture_output=True, text=True)
            self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
            self.assertNotIn("# tests 0", done.stdout)


if __name__ == "__main__":
    unittest.main()
