"""What a user sees of `headscope study --analyze` and of `headscope plot` on its run.

usage: python test_program.py PATH_TO_HEADSCOPE [unittest options]
"""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

DONE, WRONG_USAGE = 0, 2
FIGURES = ("1_loss", "2_key_pr_causal", "3_per_layer", "4_causal_decomposition", "5_gamma_cv", "6_effects_over_time", "7_effects_by_layer")
headscope: Path


def run(*arguments: object) -> subprocess.CompletedProcess:
    return subprocess.run([headscope, *map(str, arguments)], capture_output=True, text=True, timeout=60)


def write_condition(folder: Path, tag: str, final_pr: float) -> None:
    pr = [86.5, 70.0, final_pr]
    results = {
        "tag": tag, "tokens": [0, 983040, 1966080], "loss": [None, 7.2, 6.3], "val_loss": [None, 7.1, 6.25], "mean_pr": pr,
        "layer_pr": {"0": pr, "1": pr}, "gamma_cv": {} if tag == "NoQK" else {"0": [0, 0.1, 0.2], "1": [0, 0.2, 0.1]},
    }
    (folder / tag).mkdir(parents=True)
    (folder / tag / "results.json").write_text(json.dumps(results))


class Study(unittest.TestCase):
    def setUp(self) -> None:
        temporary = tempfile.TemporaryDirectory()
        self.addCleanup(temporary.cleanup)
        self.folder = Path(temporary.name)
        self.data, self.out = self.folder / "data", self.folder / "out"
        for tag, final_pr in (("QK", 60.25), ("QK_frozen", 60.0), ("NoQK", 65.0)):
            write_condition(self.data, tag, final_pr)

    def refuse(self, *arguments: object, words: tuple[str, ...]) -> None:
        done = run("study", *arguments)
        self.assertEqual(done.returncode, WRONG_USAGE, done.stderr)
        self.assertEqual(len(done.stderr.splitlines()), 1, done.stderr)
        for word in words:
            self.assertIn(word, done.stderr)

    def test_says_what_it_found_and_where_the_figures_are(self) -> None:
        done = run("study", "--analyze", self.data, "--out", self.out)
        self.assertEqual(done.returncode, DONE, done.stderr)
        lines = done.stdout.splitlines()
        self.assertLess(len(lines), 25)
        self.assertRegex(lines[0], "^descriptive: one seed")
        self.assertRegex(done.stdout, r"A QK +60\.25 +6\.250 +26\.25")
        self.assertRegex(done.stdout, r"C NoQK +65\.00 +6\.250 +21\.50")
        self.assertRegex(done.stdout, r"norm, B − C +−5\.00 +- +different: worsens")
        self.assertIn("verdict: normalisation", done.stdout)
        self.assertIn("a null result for γ", " ".join(done.stdout.split()))
        self.assertLessEqual(max(map(len, done.stdout.replace(str(self.out), "").splitlines())), 100)
        self.assertIn("(after 2.0 M tokens)", done.stdout)
        self.assertIn(str(self.out), done.stdout)
        for name in FIGURES:
            for ending in ("png", "svg", "gp"):
                self.assertTrue((self.out / f"{name}.{ending}").is_file(), name)
        self.assertEqual(json.loads((self.out / "combined.json").read_text())["verdict"]["conclusion"], "normalisation")

    def test_prints_one_json_object(self) -> None:
        done = run("study", "--analyze", self.data, "--out", self.out, "--tau", "0.125", "--json")
        verdict = json.loads(done.stdout)["verdict"]
        self.assertEqual(verdict["conclusion"], "both")
        self.assertIs(verdict["descriptive"], True)
        self.assertEqual(verdict["effects"]["norm"]["word"], "worsens")
        self.assertEqual([reading["tokens"] for reading in verdict["over_time"]], [0, 983040, 1966080])
        self.assertEqual((verdict["gamma_effect"], verdict["norm_effect"], verdict["tau"]), (0.25, -5.0, 0.125))
        self.assertIs(verdict["kill_criterion"], False)

    def test_quiet_prints_nothing(self) -> None:
        done = run("study", "--analyze", self.data, "--out", self.out, "--quiet")
        self.assertEqual((done.returncode, done.stdout, done.stderr), (DONE, "", ""))

    def test_several_folders_are_seeds(self) -> None:
        other = self.folder / "other"
        for tag, final_pr in (("QK", 60.5), ("QK_frozen", 60.125), ("NoQK", 65.5)):
            write_condition(other, tag, final_pr)
        done = run("study", "--analyze", self.data, other, "--out", self.out, "--json")
        self.assertEqual(json.loads(done.stdout)["verdict"]["seeds"]["A"]["n"], 2)
        text = run("study", "--analyze", self.data, other, "--out", self.out, "--overwrite").stdout
        self.assertNotIn("descriptive", text)
        self.assertIn("±: 95 % interval over 2 seeds", text)
        self.assertRegex(text, r"A QK +60\.38 ± 1\.59 +6\.250 \(all equal\)")  # t(0.975, 1) * 0.125 = 1.588

    def test_a_warning_is_said_once(self) -> None:
        copy = self.folder / "copy"
        shutil.copytree(self.data, copy)
        done = run("study", "--analyze", self.data, copy, "--out", self.out)
        self.assertEqual(done.returncode, DONE, done.stderr)
        self.assertEqual(done.stderr.count("runs with the same values"), 1, done.stderr)

    def test_seeds_that_scatter_more_than_tau_are_inconclusive(self) -> None:
        one, other = self.folder / "one", self.folder / "other"
        for folder, prs in ((one, (59.0, 60.0, 61.0)), (other, (61.0, 60.5, 59.5))):
            for tag, final_pr in zip(("QK", "QK_frozen", "NoQK"), prs):
                write_condition(folder, tag, final_pr)
        text = run("study", "--analyze", one, other, "--out", self.out).stdout
        self.assertIn("verdict: inconclusive", text)
        self.assertNotIn("null result", text)

    def test_power_is_that_of_the_observed_deviation_or_a_table(self) -> None:
        other = self.folder / "other"
        for tag, final_pr in (("QK", 60.0), ("QK_frozen", 60.25), ("NoQK", 65.5)):
            write_condition(other, tag, final_pr)
        done = run("study", "--analyze", self.data, other, "--out", self.out, "--power", "--json")
        gamma = json.loads(done.stdout)["power"]["gamma"]
        self.assertAlmostEqual(gamma["deviation"], 0.125**0.5, places=12)  # of 0.25 and -0.25
        self.assertEqual((gamma["family"], gamma["seeds_for_different"]), (3, 4))
        table = run("study", "--power")
        self.assertEqual((table.returncode, table.stderr), (DONE, ""))
        self.assertRegex(table.stdout, r"0\.42 +5 +92 % +100 % +99 %")  # simulated by others
        self.assertRegex(table.stdout, r"0\.6 +5 +70 % +98 % +84 %")
        plan = json.loads(run("study", "--power", "--json").stdout)
        self.assertEqual((list(plan), plan["tau"]), (["tau", "power"], 1))
        rows = plan["power"]
        page = (Path(__file__).parents[2] / "docs" / "study.md").read_text()
        for row in rows:
            for chance in row["chances"]:
                cells = [f"{row['deviation']:g}", str(chance.pop("seeds")), *(f"{100 * value:.0f} %" for value in chance.values())]
                self.assertIn(f"| {' | '.join(cells)} |", page)
            self.assertIn(f"| {row['seeds_for_different']}, {row['seeds_for_equivalent']} |", page)
        self.refuse("--power", "--seeds", "1,2", words=("--power",))
        for tau in ("0", "1e308", "1e-308", "nan"):
            self.refuse("--power", "--tau", tau, words=("--tau",))
        self.assertNotRegex(run("study", "--power", "--tau", "1e-6").stdout, "nan|inf|-0 ")

    def test_no_difference_is_said_in_words(self) -> None:
        same = self.folder / "same"
        for tag in ("QK", "QK_frozen", "NoQK"):
            write_condition(same, tag, 60.0)
        self.assertIn("verdict: none (no difference of at least τ = 1)", run("study", "--analyze", same, "--out", self.out).stdout)

    def test_wrong_usage_is_one_line(self) -> None:
        self.refuse("--analyze", self.folder / "nowhere", "--out", self.out, words=("nowhere",))
        self.refuse("--analyze", self.data, "--out", self.out, "--tau", "-1", words=("--tau",))
        self.refuse("--analyze", self.data, "--out", self.out, "--tau", "one", words=("--tau",))
        self.refuse("--analyze", self.data, "--out", self.out, "--theme", "blue", words=("blue",))
        self.refuse("--analyse", self.data, words=("--analyse", "--analyze"))
        self.assertFalse(self.out.exists())

    def test_a_damaged_file_is_named_with_its_field(self) -> None:
        file = self.data / "NoQK" / "results.json"
        file.write_text(file.read_text().replace("86.5", '"x"', 1))
        self.refuse("--analyze", self.data, "--out", self.out, words=("NoQK/results.json", "mean_pr[0]"))
        self.assertFalse(self.out.exists())

    def test_an_existing_run_is_kept_unless_told_otherwise(self) -> None:
        self.assertEqual(run("study", "--analyze", self.data, "--out", self.out).returncode, DONE)
        self.refuse("--analyze", self.data, "--out", self.out, words=("--overwrite",))
        self.assertEqual(run("study", "--analyze", self.data, "--out", self.out, "--overwrite").returncode, DONE)

    def test_resuming_a_complete_run_draws_what_is_missing(self) -> None:
        run("study", "--analyze", self.data, "--out", self.out)
        before = (self.out / "1_loss.svg").read_bytes()
        (self.out / "1_loss.svg").unlink()
        done = run("study", "--resume", "--out", self.out)
        self.assertEqual(done.returncode, DONE, done.stderr)
        self.assertEqual((self.out / "1_loss.svg").read_bytes(), before)

    def test_plot_draws_the_run_again(self) -> None:
        run("study", "--analyze", self.data, "--out", self.out)
        before = (self.out / "1_loss.svg").read_bytes()
        done = run("plot", self.out, "--theme", "dark")
        self.assertEqual(done.returncode, DONE, done.stderr)
        self.assertEqual(len(done.stdout.splitlines()), len(FIGURES))
        self.assertNotEqual((self.out / "1_loss.svg").read_bytes(), before)


if __name__ == "__main__":
    headscope = Path(sys.argv.pop(1)).resolve()
    unittest.main()
