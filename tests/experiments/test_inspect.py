"""What a user sees of `headscope inspect`, `roles` and `plot` on a run of `headscope train`, and what is refused.

usage: python test_inspect.py PATH_TO_HEADSCOPE [unittest options]
"""

from __future__ import annotations

import json
import os
import shutil
import struct
import subprocess
import sys
import time
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "train"))

import program  # noqa: E402
from program import (  # noqa: E402
    FIGURES, HEADS, KEY_HEADS, KEY_METRICS, LAYERS, QUERY_METRICS, SCORES, TOKENS_PER_STEP, WRONG_USAGE, differing,
    files_of, head_values, Program, read, rows, rows_of_a_moment, run, settings, setUpModule, steps,
)


class Inspect(Program):
    def test_ACheckpoint_IsMeasuredAsTheProbeWas(self):
        for step in (5, 12):
            out = self.folder / str(step)
            printed = json.loads(
                self.done("inspect", program.shared / f"run/checkpoints/step-{step:06}", "--out", out, "--json"))
            self.assertEqual((printed["step"], printed["tokens"]), (step, step * TOKENS_PER_STEP))
            values = head_values(program.shared / "run", "probe")
            probed = {key: value for key, value in values.items() if key[0] == step}
            self.assertEqual(head_values(out, "probe"), probed)  # bit for bit
            self.assertEqual(len(probed), rows_of_a_moment("probe")["heads"])
            for name in ("layers", "gamma"):
                table = read(program.shared / "run", name).to_pylist()
                expected = [row for row in table if row["step"] == step and row.get("source") != "train"]
                self.assertEqual(read(out, name).to_pylist(), expected, name)
            (row,) = [row for row in read(program.shared / "run", "probes").to_pylist() if row["step"] == step]
            self.assertEqual(printed["val_loss"], row["val_loss"])
            (measured,) = read(out, "probes").to_pylist()
            self.assertEqual((measured["val_loss"], measured["k_pr"]), (row["val_loss"], row["k_pr"]))
            self.assertEqual(json.loads((out / "manifest.json").read_text())["status"], "complete")

    def test_ARun_StandsForItsNewestCheckpointAndAMetricIsShown(self):
        before = files_of(program.shared / "run")
        printed = self.done("inspect", program.shared / "run", "--show", "k_pr", "--out", self.folder / "out")
        self.assertIn("step-000012: step 12", printed)
        lines = printed.splitlines()
        (top,) = [i for i, line in enumerate(lines) if line.split() == ["k_pr", "K0", "K1"]]
        values = head_values(program.shared / "run", "probe")
        for layer in range(LAYERS):
            shown = [f"{values[12, layer, 'k', head, 'k_pr']:.2f}" for head in range(KEY_HEADS)]
            self.assertEqual(lines[top + 1 + layer].split(), ["layer", str(layer), *shown])
        self.assertEqual(differing(files_of(program.shared / "run"), before), [])

    def test_ChosenMetrics_NeedNoShow(self):
        out = self.folder / "out"
        self.assertIn("k_norm", self.done("inspect", program.shared / "run", "--track", "norm", "--out", out))
        self.assertEqual(set(rows(out, "heads")["metric"]), {*KEY_METRICS["norm"], *QUERY_METRICS["norm"]})

    def test_OtherText_IsMeasuredInsteadOfWhatTrainingHeldOut(self):
        def text(name: str, word: str) -> Path:
            file = self.folder / name
            file.write_text("".join(json.dumps({"text": f"{word} {i}. " * 8}) + "\n" for i in range(2000)))
            return file

        held_out, other = text("held_out.jsonl", "one"), text("other.jsonl", "seven")
        trained = self.train("trained", "--data", text("text.jsonl", "one"), "--set", f"data.validation={held_out}",
                             "--set", steps(1))
        out = self.folder / "out"
        loss = json.loads(self.done("inspect", trained, "--data", other, "--out", out, "--json"))["val_loss"]
        data = json.loads((out / "manifest.json").read_text())["config"]["data"]
        self.assertEqual((data["path"], data["validation"]), (str(other), ""))
        self.assertNotEqual(loss, rows(trained, "probes")["val_loss"][-1])


class Published(Program):
    def setUp(self) -> None:
        super().setUp()
        self.models = Path(os.environ.get("HEADSCOPE_SHARED", Path(__file__).resolve().parents[3] / "shared"))
        self.models /= "reference/models/tiny"
        if not self.models.is_dir():
            self.skipTest("the shared reference models are not there")
        self.text = self.folder / "text.jsonl"
        self.text.write_text("".join(f'{{"text": "A cat, number {i}, sat on mat {i * i}."}}\n' for i in range(900)))

    def test_APublishedModel_IsMeasuredWithItsOwnTokenizer(self):
        for name, layers, heads, gains in (("llama", 3, 4, False), ("qwen3", 3, 4, True)):
            out = self.folder / name
            said = json.loads(self.done("inspect", self.models / name, "--data", self.text, "--seq-len", "32", "--batch", "4",
                                        "--out", out, "--json"))
            self.assertEqual(said["architecture"], name)
            self.assertEqual([len(layer) for layer in said["heads"]["entropy"]], [heads] * layers)
            self.assertEqual((out / "gamma.parquet").exists(), gains)  # of QK-Norm
            # Tokens of its own file give the same: the tokenizer and the batches are what they seem.
            tokens = self.folder / f"{name}.bin"
            self.done("tokenize", self.text, "--tokenizer", self.models / name, "--out", tokens)
            again = json.loads(self.done("inspect", self.models / name, "--data", tokens, "--seq-len", "32", "--batch", "4",
                                         "--out", self.folder / f"{name} again", "--json"))
            self.assertEqual(again["val_loss"], said["val_loss"])
            self.assertEqual(again["heads"], said["heads"])

    def test_ASpecialTokenBehindTheEmbedding_MayBeInTheTokenizerButNotInTheText(self):
        """Gemma 3's tokenizer has one for images, of which its text models have no embedding."""
        model = self.folder / "model"
        shutil.copytree(self.models / "llama", model)
        size = json.loads((model / "config.json").read_text())["vocab_size"]
        tokenizer = json.loads((model / "tokenizer.json").read_text())
        count = len({*tokenizer["model"]["vocab"]} | {token["content"] for token in tokenizer["added_tokens"]})
        self.assertEqual(count, size)
        token = {"id": size, "content": "<image>", "special": True, "single_word": False, "lstrip": False, "rstrip": False,
                 "normalized": False}
        tokenizer["added_tokens"].append(token)
        for special, text, words in ((True, "", ""), (True, "<image>", f"has a vocabulary of {size + 1}, and token {size} is beyond"),
                                     (False, "", f"has a vocabulary of {size + 1}, the checkpoint's is {size}")):
            token["special"] = special
            (model / "tokenizer.json").write_text(json.dumps(tokenizer))
            data = self.folder / "data.jsonl"
            data.write_text(json.dumps({"text": text + "a cat"}) + "\n" + self.text.read_text())
            done = run("inspect", model, "--data", data, "--seq-len", "32", "--batch", "4", "--out", self.folder / "out", "--overwrite")
            self.assertEqual(done.returncode, WRONG_USAGE if words else 0, done.stderr)
            self.assertIn(words, done.stderr)

    def test_ItsDataMustBeGiven(self):
        refused = run("inspect", self.models / "llama", "--out", self.folder / "out")
        self.assertEqual(refused.returncode, WRONG_USAGE)
        self.assertIn("a published model has no data of its own; give text with --data", refused.stderr)
        self.assertFalse((self.folder / "out").exists())

    def test_RolesAndSurgery_TakeItToo(self):
        more = ["--data", self.text, "--out"]
        self.done("roles", self.models / "qwen3", *more, self.folder / "roles")
        self.assertEqual(len(rows(self.folder / "roles", "roles")["role"]), 12)
        self.done("surgery", self.models / "qwen3", "--shares", "0,1", "--repeats", "1", "--bits", "8", *more, self.folder / "cut")


class EveryArchitecture(Program):
    """The small models of tests/model/published: measured, and what was written is read by the other commands."""

    def tokens(self, vocabulary: int) -> Path:
        file = self.folder / f"{vocabulary}.bin"
        (np.random.default_rng(0).integers(0, vocabulary, 6000)).astype("<u2").tofile(file)
        file.with_suffix(".json").write_text(
            json.dumps({"type": "u16", "vocabulary": vocabulary, "tokenizer": "test", "end_of_text": 0}))
        return file

    def test_IsMeasuredAndReadAgain(self):
        folders = sorted((Path(__file__).resolve().parents[1] / "model/published").iterdir())
        self.assertGreaterEqual(len(folders), 12)
        for folder in folders:
            with self.subTest(folder.name):
                model, out = self.folder / folder.name, self.folder / f"{folder.name} out"
                model.mkdir()
                shutil.copy(folder / "default.json", model / "config.json")
                for file in folder.glob("model*"):
                    shutil.copy(file, model)
                config = json.loads((model / "config.json").read_text())
                config = config.get("text_config", config)
                small = ["--batch", "2", "--seq-len", "16", "--set", "train.validation_batches=1"]
                said = json.loads(self.done("inspect", model, "--data", self.tokens(config["vocab_size"]), *small, "--out", out, "--json"))
                self.assertEqual([len(layer) for layer in said["heads"]["entropy"]],
                                 [config["num_attention_heads"]] * config["num_hidden_layers"])
                self.assertGreater(said["val_loss"], 0.9 * np.log(config["vocab_size"]))  # random weights know nothing
                self.done("heads", out, "--by", "sink")
                self.done("roles", out)

    def test_SurgeryTakesAFileAndShards(self):
        published = Path(__file__).resolve().parents[1] / "model/published"
        for name, model in (("gguf", published / "gpt_neox/default.gguf"), ("folder", self.folder / "model")):
            if name == "folder":
                model.mkdir()
                shutil.copy(published / "gpt_neox/default.json", model / "config.json")
                for file in (published / "gpt_neox").glob("model*"):
                    shutil.copy(file, model)
            size = json.loads((published / "gpt_neox/default.json").read_text())["vocab_size"]
            tokens = self.folder / "tokens.bin"
            (np.random.default_rng(0).integers(0, size, 20000)).astype("<u2").tofile(tokens)
            tokens.with_suffix(".json").write_text(
                json.dumps({"type": "u16", "vocabulary": size, "tokenizer": "test", "end_of_text": 0}))
            self.done("surgery", model, "--data", tokens, "--shares", "0,1", "--repeats", "1", "--bits", "8", "--out",
                      self.folder / f"cut {name}")


class CutFile(Program):
    def test_AModelThatIsCutWhileItIsRead_IsOneLine(self):
        """Sparse weights, whose reading takes a while; the file is cut meanwhile."""
        model = self.folder / "model"
        model.mkdir()
        published = Path(__file__).resolve().parents[1] / "model/published/qwen3"
        config = json.loads((published / "default.json").read_text()) | {"vocab_size": 1 << 22, "tie_word_embeddings": True}
        (model / "config.json").write_text(json.dumps(config))
        small = (published / "model.safetensors").read_bytes()
        first = 8 + struct.unpack("<Q", small[:8])[0]
        header = {key: entry for key, entry in json.loads(small[8:first]).items() if key != "lm_head.weight" and key != "__metadata__"}
        data, place = b"", 0
        for key, entry in header.items():
            begin, end = entry["data_offsets"]
            if key != "model.embed_tokens.weight":
                entry["data_offsets"] = [place, place + end - begin]
                data, place = data + small[first + begin:first + end], place + end - begin
        size = (1 << 22) * config["hidden_size"] * 2
        header["model.embed_tokens.weight"] = {"dtype": "BF16", "shape": [1 << 22, config["hidden_size"]],
                                               "data_offsets": [place, place + size]}
        text = json.dumps(header).encode()
        text += b" " * (-len(text) % 8)
        file = model / "model.safetensors"
        file.write_bytes(struct.pack("<Q", len(text)) + text + data)
        os.truncate(file, 8 + len(text) + place + size)
        tokens = self.folder / "t.bin"
        np.zeros(2000, "<u4").tofile(tokens)
        tokens.with_suffix(".json").write_text(json.dumps({"type": "u32", "vocabulary": 60, "tokenizer": "test", "end_of_text": 0}))
        process = subprocess.Popen([str(program.headscope), "inspect", model, "--data", tokens, "--batch", "1", "--seq-len", "8", "--out",
                                    self.folder / "out"], stderr=subprocess.PIPE, text=True)
        while process.poll() is None and int(Path(f"/proc/{process.pid}/statm").read_text().split()[1]) < 60_000:
            time.sleep(0.001)  # until weights are being converted
        os.truncate(file, 1 << 16)
        _, said = process.communicate(timeout=120)
        self.assertEqual((process.returncode, said), (1, "headscope: a file was cut short while it was read; put it back and start again\n"))


class Course(Program):
    """Several models of one training: checkpoints of ours, or published revisions."""

    def setUp(self) -> None:
        super().setUp()
        self.text = self.folder / "text.jsonl"
        self.text.write_text("".join(f'{{"text": "A cat, number {i}, sat on mat {i * i}."}}\n' for i in range(900)))
        self.published = Path(__file__).resolve().parents[1] / "model/published/qwen3"

    def revision(self, name: str, change: int = 0) -> Path:
        """A small model whose weights are others for every `change`."""
        folder = self.folder / name
        folder.mkdir(parents=True)
        shutil.copy(self.published / "default.json", folder / "config.json")
        content = bytearray((self.published / "model.safetensors").read_bytes())
        first = 8 + struct.unpack("<Q", content[:8])[0]
        header = json.loads(content[8:first])
        begin, end = header["model.layers.0.self_attn.k_proj.weight"]["data_offsets"]
        for place in range(first + begin, first + end, 2):  # the lower bytes of bfloat16
            content[place] ^= change
        (folder / "model.safetensors").write_bytes(content)
        return folder

    def inspect(self, *models: object, out: str = "out", more: tuple = ()) -> dict:
        return json.loads(self.done("inspect", *models, "--data", self.tokens, "--seq-len", "16", "--batch", "4", *more, "--out",
                                    self.folder / out, "--json"))

    @property
    def tokens(self) -> Path:
        """Tokens below the vocabulary of the small model."""
        file = self.folder / "tokens.bin"
        if not file.exists():
            size = json.loads((self.published / "default.json").read_text())["vocab_size"]
            ids = (np.arange(4000) * 7919 % size).astype("<u2")
            ids[::50] = 0
            ids.tofile(file)
            self.info(file, size)
        return file

    def info(self, file: Path, size: int) -> None:
        text = {"type": "u16", "vocabulary": size, "tokenizer": "test", "end_of_text": 0, "tokens": 4000, "documents": 80}
        file.with_suffix(".json").write_text(json.dumps(text))

    def test_CheckpointsOfARun_AreItsProbes(self):
        checkpoints = [program.shared / f"run/checkpoints/step-{step:06}" for step in (12, 5)]
        printed = json.loads(self.done("inspect", *checkpoints, "--out", self.folder / "out", "--json"))
        self.assertEqual([(one["step"], one["tokens"]) for one in printed["models"]],
                         [(step, step * TOKENS_PER_STEP) for step in (5, 12)])
        of_training = head_values(program.shared / "run", "probe")
        self.assertEqual(head_values(self.folder / "out", "probe"),
                         {key: value for key, value in of_training.items() if key[0] in (5, 12)})  # bit for bit
        for name in ("layers", "gamma", "probes"):
            expected = [row for row in read(program.shared / "run", name).to_pylist()
                        if row["step"] in (5, 12) and row.get("source") != "train"]
            found = read(self.folder / "out", name).to_pylist()
            for row in (*expected, *found):
                row.pop("loss", None)  # of training
            self.assertEqual(found, expected, name)
        self.done("plot", self.folder / "out")
        self.assertIn("highest first at step 5", self.done("heads", self.folder / "out", "--by", "sink", "--step", "5"))

    def test_Revisions_AreMeasuredAsEachAlone(self):
        models = [self.revision(f"model/step{step}", step // 1000) for step in (2000, 0, 1000)]
        together = self.inspect(*models)
        self.assertEqual([one["step"] for one in together["models"]], [0, 1000, 2000])
        alone = {}
        for model in models:
            said = self.inspect(model, out=f"alone {model.name}")
            alone |= head_values(self.folder / f"alone {model.name}", "probe")
            self.assertIn((said["step"], said["val_loss"]), [(one["step"], one["val_loss"]) for one in together["models"]])
        self.assertEqual(head_values(self.folder / "out", "probe"), alone)
        summary = (self.folder / "out/summary.md").read_text()
        self.assertIn("Heads of model (qwen3) over training", summary)
        self.assertIn("at 3 moments from step 0 to 2000.", summary)
        self.assertEqual(len({one["weights_xxh3_128"] for one in together["models"]}), 3)
        self.done("plot", self.folder / "out")
        self.assertIn("updates (thousand)", (self.folder / "out/plots/effective_rank.svg").read_text())
        self.assertIn("of the updates", self.done("roles", self.folder / "out"))

    def test_TokensInNames_AreTheCourse(self):
        self.inspect(self.revision("a/step10-tokens1M"), self.revision("a/step20-tokens2M", 1))
        self.assertEqual(set(rows(self.folder / "out", "heads")["tokens"]), {1_000_000, 2_000_000})

    def test_TheSameWeightsUnderTwoNames_AreSaid(self):
        models = [self.revision("m/step1"), self.revision("m/step2", 1), self.revision("m/step3")]
        done = run("inspect", *models, "--data", self.tokens, "--seq-len", "16", "--batch", "4", "--out", self.folder / "out")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertRegex(done.stderr, "m/step1 and .*m/step3: have the same weights, to the last bit")
        same = json.loads((self.folder / "out/manifest.json").read_text())["same_weights"]
        self.assertEqual([[Path(name).name for name in group] for group in same], [["step1", "step3"]])

    def test_AnInterruptedCourse_GoesOn(self):
        models = [self.revision(f"model/step{step}", step) for step in (1, 2, 3)]
        self.inspect(*models)
        out = self.folder / "out"
        expected = head_values(out, "probe")
        kept, manifest = (json.loads((out / name).read_text()) for name in ("models.json", "manifest.json"))
        self.assertEqual(len(kept["models"]), 3)
        kept["models"] = kept["models"][:1]
        kept["rows"] = {name: count // 3 for name, count in kept["rows"].items()}  # as after the first
        manifest["status"] = "interrupted"
        (out / "models.json").write_text(json.dumps(kept))
        (out / "manifest.json").write_text(json.dumps(manifest))
        tokens = self.tokens.read_bytes()
        self.tokens.write_bytes(tokens[2:] + tokens[:2])
        refused = run("inspect", "--resume", "--out", out)
        self.assertEqual(refused.returncode, WRONG_USAGE)
        self.assertIn("is not the data that models were measured on before", refused.stderr)
        self.tokens.write_bytes(tokens)
        manifest["status"] = "interrupted"
        (out / "manifest.json").write_text(json.dumps(manifest))
        self.done("inspect", "--resume", "--out", out)
        self.assertEqual(head_values(out, "probe"), expected)
        self.assertEqual(len(json.loads((out / "models.json").read_text())["models"]), 3)

    def test_WhatIsNoCourse_IsRefused(self):
        one, two = self.revision("m/step1"), self.revision("m/step2", 1)
        for models, more, words in (
            ((one, two), ("--steps=-1,2",), "--steps: -1 is no step"),
            ((one, self.revision("m/main")), (), "its name says no step; give the step of each model with --steps"),
            ((one, self.revision("n/step1")), (), "both are of step 1"),
            ((one, two), ("--steps", "1"), "--steps: 1 for 2 models"),
            ((one, two), ("--steps", "7,7"), "both are of step 7"),
            ((one,), ("--steps", "7"), "--steps: is for several models"),
            ((one, two), ("--steps", "1,x"), "--steps"),
            ((self.revision("s/stage1-step5"), self.revision("s/stage2-step6")), (), "is of another stage"),
            ((one, program.shared / "run/checkpoints/step-000012"), (), "what is measured together must be one model"),
        ):
            with self.subTest(words=words):
                done = run("inspect", *models, *more, "--data", self.tokens, "--seq-len", "16", "--batch", "4", "--out",
                           self.folder / "refused")
                self.assertEqual(done.returncode, WRONG_USAGE, done.stderr)
                self.assertIn(words, done.stderr)
                self.assertFalse((self.folder / "refused").exists())


class Roles(Program):
    def definition(self, text: str = "id: mine-1\nroles:\n  wide: {broad: 0.1}\n") -> Path:
        file = self.folder / "mine.yaml"
        file.write_text(text)
        return file

    def test_ARun_GivesTheSameBytesAgain(self):
        out = self.copy_of_run("run")
        before = files_of(out)
        first = self.done("roles", out)
        self.assertIn("definition seeds-1", first)
        maps = [line.split() for line in first.splitlines() if line[:5].strip().isdigit()]
        self.assertEqual([(layer, len(heads)) for layer, heads in maps], [("0", HEADS), ("1", HEADS)])
        self.assertEqual(self.done("roles", out), first)
        self.assertEqual(differing(files_of(out), before), [])

    def test_AnotherDefinition_GivesOtherLabelsElsewhere(self):
        before, out = files_of(program.shared / "run"), self.folder / "out"
        printed = json.loads(
            self.done("roles", program.shared / "run", "--definition", self.definition(), "--out", out, "--json"))
        self.assertEqual(differing(files_of(program.shared / "run"), before), [])
        self.assertEqual(printed["definition"]["id"], "mine-1")
        table, original = rows(out, "roles"), rows(program.shared / "run", "roles")
        self.assertEqual(set(table["definition"]), {"mine-1"})
        self.assertTrue(set(table["definition_hash"]).isdisjoint(original["definition_hash"]))
        self.assertEqual(table["role"], ["wide" if broad >= 0.1 else "mixed" for broad in table["broad"]])
        self.assertNotEqual(table["role"], original["role"])
        for score in SCORES:
            self.assertEqual(table[score], original[score], score)
        self.assertTrue((out / "plots" / "role_map.png").exists())
        drawn = (out / "plots" / "role_map.svg").read_bytes()
        (out / "plots" / "role_map.svg").unlink()
        self.done("plot", out)  # the folder stands for itself
        self.assertEqual((out / "plots" / "role_map.svg").read_bytes(), drawn)
        self.done("roles", out, "--out", out, "--overwrite")  # replaces roles, not what they come from
        self.assertEqual((out / "roles.parquet").read_bytes(), (program.shared / "run" / "roles.parquet").read_bytes())

    def test_AnotherDefinition_StandsBesideTheRunsRoles(self):
        out = self.copy_of_run("run")
        before = files_of(out)
        printed = json.loads(self.done("roles", out, "--definition", self.definition(), "--json"))
        self.assertEqual(printed["out"], str(out / "roles/mine-1"))
        table = rows(out / "roles/mine-1", "roles")
        self.assertEqual(table["role"], ["wide" if broad >= 0.1 else "mixed" for broad in table["broad"]])
        after = files_of(out)
        self.assertEqual({name: after[name] for name in before}, before)
        self.assertTrue(all(Path(name).parts[:2] == ("roles", "mine-1") for name in after.keys() - before.keys()))
        self.done("plot", out)  # draws both, as they were
        self.assertEqual(differing(files_of(out), after), [])
        shutil.rmtree(out / "roles/mine-1/plots")
        self.assertIn(f"{out}/roles/mine-1/plots/role_map.png", self.done("plot", out))
        self.assertEqual(differing(files_of(out), after), [])
        self.assertIn("definition mine-1", (out / "roles/mine-1/plots/role_map.svg").read_text())
        self.done("train", "--config", out / "config.yaml", "--out", out, "--overwrite")  # they are of the run
        self.assertFalse((out / "roles").exists())

    def test_TwoDefinitionsOfOneName_AreNotMixedUp(self):
        out = self.copy_of_run("run")
        self.done("roles", out, "--definition", self.definition())
        before, other = files_of(out), self.definition("id: mine-1\nroles:\n  wide: {broad: 0.2}\n")
        refused = run("roles", out, "--definition", other)
        self.assertEqual(refused.returncode, WRONG_USAGE)
        self.assertIn("holds roles of another definition with the id 'mine-1'", refused.stderr)
        self.assertEqual(differing(files_of(out), before), [])
        self.done("roles", out, "--definition", other, "--overwrite")
        self.assertNotEqual(differing(files_of(out), before), [])

    def test_AtAStep_AreThoseOfARunThatEndedThere(self):
        # The labels at a step come from the rows of that step alone: those of the timeline, counted.
        out = self.copy_of_run("run")
        before, definition = files_of(out), self.definition("id: half\nroles:\n  wide: {broad: 0.93}\n")
        self.done("roles", out, "--definition", definition)
        whole = rows(out / "roles/half", "role_timeline")
        steps_measured = sorted(set(whole["step"]))
        for asked in (steps_measured[1], steps_measured[-1] - 1):
            found = max(step for step in steps_measured if step <= asked)
            text = self.done("roles", out, "--definition", definition, "--step", asked)
            self.assertIn(f"roles at step {found} (", text)
            place = out / f"roles/half/step-{found}"
            self.assertEqual(set(rows(place, "role_timeline")["step"]), {s for s in steps_measured if s <= found})
            broad = {(layer, head): value for (step, layer, kind, head, metric), value
                     in head_values(out, "probe").items() if (step, kind, metric) == (found, "q", "entropy_norm")}
            table = rows(place, "roles")
            self.assertEqual([role == "wide" for role in table["role"]],
                             [broad[key] >= 0.93 for key in zip(table["layer"], table["head"])])
            self.assertEqual(json.loads((place / "roles.json").read_text())["until_step"], asked)
        after = files_of(out)
        self.assertEqual({name: after[name] for name in before}, before)
        self.done("plot", out)
        self.assertEqual(differing(files_of(out), after), [])
        self.done("roles", out, "--step", steps_measured[0])  # of the built-in definition
        self.assertTrue((out / f"roles/seeds-1/step-{steps_measured[0]}/roles.parquet").exists())
        refused = run("roles", out, "--step", "-1")
        self.assertEqual(refused.returncode, WRONG_USAGE)
        self.assertIn(f"--step -1: the first measurement of 'probe' is at step {steps_measured[0]}", refused.stderr)

    def test_ACheckpoint_IsMeasuredFirst(self):
        out = self.folder / "out"
        self.done("roles", program.shared / "run/checkpoints/step-000012", "--out", out)
        self.assertEqual((out / "roles.parquet").read_bytes(), (program.shared / "run/roles.parquet").read_bytes())
        self.assertEqual(set(rows(out, "role_timeline")["step"]), {12})

    def test_OfTrainingBatches_IsDrawnAgainFromThem(self):
        out = self.copy_of_run("run")
        self.assertIn("on training batches (train)", self.done("roles", out, "--source", "train"))
        self.assertEqual(set(rows(out / "roles/seeds-1/train", "role_timeline")["step"]), set(range(12)))
        self.assertIn("training batches", (out / "roles/seeds-1/train/plots/role_map.svg").read_text())
        before = files_of(out)
        self.done("plot", out)
        self.assertEqual(differing(files_of(out), before), [])

    def test_Plot_GivesTheSameFiguresAgainOrOthersInTheDark(self):
        out = self.copy_of_run("run")
        before = files_of(out)
        shutil.rmtree(out / "plots")
        self.done("plot", out)
        self.assertEqual(differing(files_of(out), before), [])
        self.done("plot", out, "--theme", "dark")
        changed = {Path(name).name for name in differing(files_of(out), before)}
        self.assertLessEqual({f"{figure}{suffix}" for figure in FIGURES for suffix in (".png", ".svg", ".gp")}, changed)


class BadInput(Program):
    def refused(self, message: str, *arguments: object) -> None:
        result = run(*arguments)
        self.assertEqual(result.returncode, WRONG_USAGE, result.stderr)
        lines = [line for line in result.stderr.splitlines() if not line.startswith("headscope: data:")]
        self.assertEqual(len(lines), 1, result.stderr)
        self.assertIn(message, lines[0])
        self.assertEqual(result.stdout, "")

    def test_EachHasItsLine_AndLeavesNothing(self):
        ran, out = program.shared / "run", ["--out", self.folder / "out"]
        before = files_of(ran)
        missing, empty = self.folder / "missing", self.folder / "empty"
        empty.mkdir()
        definition = self.folder / "unknown.yaml"
        definition.write_text("id: mine-1\nroles:\n  wide: {brod: 0.1}\n")
        for message, arguments in (
            ("unknown metric or group 'nrom'; did you mean 'norm'?", ["train", "--track", "nrom", *out]),
            ("unknown metric or group 'k_pt'; did you mean 'k_pr'?", ["train", "--track", "rank,k_pt", *out]),
            ("unknown metric or group 'rnk'; did you mean 'rank'?", ["inspect", ran, "--track", "rnk", *out]),
            ("--show: unknown metric 'k_nrm'; did you mean 'k_norm'?", ["inspect", ran, "--show", "k_nrm", *out]),
            ("--show sink: is not among --track norm",
             ["inspect", ran, "--track", "norm", "--show", "sink", *out]),
            ("--track gain: measures nothing of heads", ["inspect", ran, "--track", "gain", *out]),
            ("track.every is -1; expected 0 to 1000000000000000", ["train", "--track-every", "-1", *out]),
            ("unknown theme 'nonsense'; known are light, dark", ["train", "--theme", "nonsense", *out]),
            ("unknown theme 'nonsense'; known are light, dark", ["roles", ran, "--theme", "nonsense", *out]),
            ("unknown theme 'nonsense'; known are light, dark", ["plot", ran, "--theme", "nonsense"]),
            ("'model.d_k' belongs to the checkpoint", ["inspect", ran, "--set", "model.d_k=16", *out]),
            ("--source both: expected probe or train", ["roles", ran, "--source", "both", *out]),
            (f"--out {ran}/plots: is a part of the run {ran}", ["plot", ran, "--out", ran / "plots"]),
            ("--per-head: bucket heat maps belong to runs of 'plasticity'", ["plot", ran, "--per-head"]),
            ("--step -1: the first measurement of 'probe' is at step 0", ["heads", ran, "--by", "sink", "--step", "-1"]),
            ("there is no score 'brod'; did you mean 'broad'?", ["roles", ran, "--definition", definition, *out]),
            (str(missing), ["roles", ran, "--definition", missing, *out]),
            (f"{missing}: ", ["inspect", missing, *out]),
            (f"{missing}: ", ["roles", missing, *out]),
            (f"{missing}: is not there", ["plot", missing]),
            (f"{empty}: is no checkpoint", ["inspect", empty, *out]),
            (f"{empty}: is no checkpoint", ["roles", empty, *out]),
            (f"{empty}: is not a run folder", ["plot", empty]),
            (f"{ran}: exists and is complete", ["train", *settings(steps(12)), "--out", ran]),
            ("--track-every: track.every is 2, and 1 in the run",
             ["train", *settings(steps(12)), "--track-every", "2", "--out", ran, "--resume"]),
            ("is a run of 'train', not of 'inspect'", ["inspect", ran, "--out", ran, "--overwrite"]),
        ):
            with self.subTest(message):
                self.refused(message, *arguments)
                self.assertFalse((self.folder / "out").exists())
        self.assertEqual(differing(files_of(ran), before), [])
        self.assertEqual(sorted(path.name for path in self.folder.iterdir()), ["empty", "unknown.yaml"])

    def test_WithoutItsTables_ARunIsRefused(self):
        out = self.copy_of_run("run")
        shutil.rmtree(out / "heads.parquet")
        for command in ("roles", "plot"):
            self.refused(f"{out}: has no heads.parquet", command, out)
        shutil.rmtree(out / "checkpoints")
        self.refused("is no checkpoint", "inspect", out, "--out", self.folder / "out")
        self.assertFalse((self.folder / "out").exists())

    def test_ADamagedTable_IsNamed(self):
        out = self.copy_of_run("run")
        file = out / "heads.parquet" / "part-00000.parquet"
        content = bytearray(file.read_bytes())
        content[len(content) // 3] ^= 1
        file.write_bytes(content)
        for command in ("roles", "plot"):
            self.refused("heads.parquet", command, out)

    # Tensors of other shapes than the configuration says, with the right hash: tests/train/loop_test.cpp.
    def test_WeightsOfAnotherModel_AreNotThoseOfTheCheckpoint(self):
        other = self.train("other", "--set", "model.d_model=48", "--set", steps(1), "--track-every", "0")
        out = self.copy_of_run("run")
        mixed = out / "checkpoints" / "step-000012"
        shutil.copy(other / "checkpoints" / "step-000001" / "model.safetensors", mixed)
        for command in ("inspect", "roles"):
            self.refused("model.safetensors: its content does not match the hash", command, mixed, "--out",
                         self.folder / "out")
            self.assertFalse((self.folder / "out").exists())


if __name__ == "__main__":
    program.main()
