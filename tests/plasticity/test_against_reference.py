"""Every number of `headscope plasticity` against an independent numpy and scipy implementation.

usage: python test_against_reference.py PATH_TO_HEADSCOPE [unittest options]
"""

from __future__ import annotations

import json
import math
import tempfile
import unittest
from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path

import program
from plasticity_datasets import DATASETS, Dataset, head_file, random_dataset
from plasticity_reference import (
    CELL_COLUMNS, CHECK_COLUMNS, COMPONENT_COLUMNS, METRIC_COLUMNS, REPLICATE_COLUMNS, VARIANTS, Config, analyse_head,
)

RANDOM_CASES = 30
SHOWN_DIFFERENCES = 12

INTEGER_COLUMNS = {
    "layer", "q_head", "k_head", "n_q_tokens", "n_k_tokens", "d_model", "q_bucket", "k_bucket", "n_pairs", "component",
    "own_text_pairs", "replicate",
}
P_VALUE_COLUMNS = {"q_resid0_ks_p", "q_noise_med_ks_p", "q_noise_frac_ks_p_lt_alpha", "lilliefors_p"}
RELATIVE = 1e-9
# An absolute error that is as good as exact, for columns that are differences of numbers of order one: R2 = 1 - SSres/SStot
# (and weights made of it), skewness and kurtosis (sums of cubes of order one that cancel), plasticity = 4 p (1 - p),
# deviations from a mean logarithm. One rounding there is 1e-16; sums of 1e5 of them stay far below 1e-12.
FLOOR = 1e-12
# A Kolmogorov-Smirnov p-value is 1 minus a probability of order one: its error is absolute.
P_VALUE_FLOOR = 1e-9
# A standard error is a sum over texts of influences that cancel: each keeps some ten digits of what it is a difference of.
# A replicate holds such a sum.
ERROR_COLUMNS = {"ap_gap_se", "ap_text_gap_se", "ap_overall of a replicate"}
ERROR_RELATIVE, ERROR_FLOOR = 1e-7, 1e-10
UNDEFINED_COLUMNS = {"ap_shuffled_gap_se"}  # from the bootstrap: checks_test.cpp
NO_FLOOR_COLUMNS = {"q_beta_norm"}  # scales with the vectors: 1e-13 is a value, not a rounding error


def tolerance(column: str, expected: float) -> float:
    if column in P_VALUE_COLUMNS:
        return P_VALUE_FLOOR
    if column in ERROR_COLUMNS:
        return ERROR_RELATIVE * abs(expected) + ERROR_FLOOR
    return RELATIVE * abs(expected) + (0 if column in NO_FLOOR_COLUMNS else FLOOR)


def agrees(column: str, text: str, expected: float) -> bool:
    if column in INTEGER_COLUMNS:
        return text == str(int(expected))
    if math.isnan(expected) or text == "":
        return math.isnan(expected) and text == ""
    return abs(float(text) - float(expected)) <= tolerance(column, float(expected))


def is_shortest(text: str) -> bool:
    """Whether the digits are the fewest that read back as the same number."""
    return text == "" or Decimal(text) == Decimal(repr(float(text)))


def flags_of(config: Config) -> list[str]:
    """Every setting as a flag, spelled with underscores and with dashes in turn: both are documented."""
    flags = []
    for i, (name, value) in enumerate(vars(config).items()):
        flags += ["--" + (name.replace("_", "-") if i % 2 else name), str(value)]
    return flags


def reference(dataset: Dataset, data: Path, variant: str) -> dict[str, tuple[list[str], list[dict]]]:
    """For each CSV file its header and rows."""
    metrics, cells, components, checks, replicates = [], [], [], [], []
    for layer in range(dataset.num_layers):
        for q_head in range(dataset.config.num_q_heads):
            q_file = head_file(data, layer, q_head, "q")
            k_file = head_file(data, layer, dataset.config.key_head(q_head), "k")
            head = analyse_head(q_file, k_file, layer, q_head, dataset.config, variant)
            metrics.append(head.metrics)
            cells += head.cells
            components += head.components
            checks.append(head.checks)
            replicates += head.replicates
    return {
        program.METRICS_CSV: (METRIC_COLUMNS[variant], metrics),
        program.CELLS_CSV: (CELL_COLUMNS[variant], cells),
        program.COMPONENTS_CSV: (COMPONENT_COLUMNS[variant], components),
        program.CHECKS_CSV: (CHECK_COLUMNS, checks),
        program.REPLICATES_CSV: (REPLICATE_COLUMNS, replicates),
    }


def differences(file: Path, header: list[str], expected: list[dict], skipped: frozenset[str]) -> Iterator[str]:
    found_header, rows = program.read_rows(file)
    if found_header != header:
        yield f"{file.name}: header is {','.join(found_header)}, expected {','.join(header)}"
        return
    if len(rows) != len(expected):
        yield f"{file.name}: {len(rows)} rows, expected {len(expected)}"
    for number, (row, wanted) in enumerate(zip(rows, expected), start=2):
        head = f"l{wanted['layer']:02d}h{wanted['q_head']:02d}"
        for column, text in zip(header, row, strict=True):
            where = f"{file.name} line {number}, head {head}, {column}"
            if not is_shortest(text):
                yield f"{where}: {text} is not the shortest form of {float(text)!r}"
            in_replicate = file.name == program.REPLICATES_CSV and column == "ap_overall"
            judged = "ap_overall of a replicate" if in_replicate else column
            if column not in skipped | UNDEFINED_COLUMNS and not agrees(judged, text, wanted[column]):
                yield f"{where}: program {text or 'empty'}, reference {float(wanted[column])!r}"


class Scratch(unittest.TestCase):
    def setUp(self) -> None:
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = Path(folder.name)

    def run_program(self, dataset: Dataset, out: str, *flags: object) -> Path:
        done = program.plasticity(
            self.folder / "data", "--out", self.folder / out, "--quiet",
            "--num_layers", dataset.num_layers, *flags_of(dataset.config), *flags,
        )
        self.assertEqual(done.code, program.DONE, f"dataset {dataset.name}: {done}")
        return self.folder / out


class AgainstReference(Scratch):
    """One test for each dataset and variant, added below."""

    def compare(self, dataset: Dataset, variant: str) -> None:
        dataset.write(self.folder / "data")
        out = self.run_program(dataset, "out", "--variant", variant)
        found = []
        for name, (header, rows) in reference(dataset, self.folder / "data", variant).items():
            found += differences(out / name, header, rows, dataset.noise_columns)
        if found:
            shown = "\n".join(found[:SHOWN_DIFFERENCES])
            self.fail(f"dataset {dataset.name}, variant {variant}: {len(found)} differences\n{shown}")


def add_comparisons() -> None:
    for dataset in [*DATASETS, *map(random_dataset, range(RANDOM_CASES))]:
        for variant in VARIANTS:
            def test(self, dataset=dataset, variant=variant):
                self.compare(dataset, variant)

            setattr(AgainstReference, f"test_{dataset.name}_{variant}", test)


add_comparisons()


class Repeatable(Scratch):
    def dataset(self, name: str) -> Dataset:
        found = next(d for d in DATASETS if d.name == name)
        found.write(self.folder / "data")
        return found

    def test_any_number_of_workers_writes_the_same_bytes(self) -> None:
        for name in ("gqa_3_to_1", "many_heads", "subsample_tail_shuffle"):
            with self.subTest(dataset=name):
                dataset = self.dataset(name)
                outputs = [
                    program.csv_bytes(self.run_program(dataset, f"{name}_{workers}", "--workers", workers))
                    for workers in (1, 2, 5)
                ]
                self.assertTrue(outputs[0] == outputs[1] == outputs[2], f"dataset {name}: workers change the bytes")

    def test_defaults_are_those_of_the_definition(self) -> None:
        """No flag at all: the number of layers and heads is found by looking, the rest are the documented defaults."""
        dataset = self.dataset("gqa_3_to_1")
        explicit = program.csv_bytes(self.run_program(dataset, "explicit", "--variant", "seed"))
        done = program.plasticity(self.folder / "data", "--out", self.folder / "bare")
        self.assertEqual(done.code, program.DONE, str(done))
        self.assertEqual(program.csv_bytes(self.folder / "bare"), explicit)

    def test_a_selection_of_heads_equals_the_same_rows_of_all(self) -> None:
        dataset = self.dataset("gqa_3_to_1")
        whole = self.run_program(dataset, "whole")
        part = self.run_program(dataset, "part", "--layers", "1", "--heads", "0,4-5")
        for name in program.CSV_FILES:
            header, rows = program.read_rows(whole / name)
            layer, q_head = header.index("layer"), header.index("q_head")
            wanted = [row for row in rows if row[layer] == "1" and row[q_head] in ("0", "4", "5")]
            self.assertEqual(program.read_rows(part / name), (header, wanted), name)

    def test_a_configuration_file_says_the_same_as_flags(self) -> None:
        dataset = self.dataset("few_normality_dimensions")
        by_flags = program.csv_bytes(self.run_program(dataset, "flags"))
        settings = vars(dataset.config) | {"num_layers": 1, "model_dir": "data", "dataset_local_root": str(self.folder)}
        config = self.folder / "config.yaml"
        config.write_text("".join(f"{key}: {value}\n" for key, value in settings.items()))
        done = program.plasticity("--config", config, "--out", self.folder / "file")
        self.assertEqual(done.code, program.DONE, str(done))
        self.assertEqual(program.csv_bytes(self.folder / "file"), by_flags)

    def test_resuming_a_complete_run_changes_nothing(self) -> None:
        dataset = self.dataset("many_heads")
        out = self.run_program(dataset, "out")
        before = program.csv_bytes(out)
        self.run_program(dataset, "out", "--resume")
        self.assertEqual(program.csv_bytes(out), before)

    def test_json_is_one_object_that_agrees_with_the_table(self) -> None:
        dataset = self.dataset("gqa_3_to_1")
        done = program.plasticity(self.folder / "data", "--out", self.folder / "out", "--json")
        self.assertEqual(done.code, program.DONE, str(done))
        answer = json.loads(done.stdout)
        header, rows = program.read_rows(self.folder / "out" / program.METRICS_CSV)
        values = [float(row[header.index("ap_overall")]) for row in rows]
        self.assertEqual(answer["heads"], dataset.num_layers * dataset.config.num_q_heads)
        self.assertEqual(answer["ap_overall"]["lowest"]["ap_overall"], min(values))
        self.assertEqual(answer["ap_overall"]["highest"]["ap_overall"], max(values))
        self.assertAlmostEqual(answer["ap_overall"]["mean"], sum(values) / len(values), delta=1e-15 * len(values))


if __name__ == "__main__":
    program.main(__doc__)
