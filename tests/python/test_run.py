"""A run from Python is the run of the program: same bits, same files, same errors."""

from __future__ import annotations

import json
import re
import subprocess
import sys

from common import SOURCE, InFolder, config, run_program

import tranche

USAGE, DATA = tranche.Status.USAGE, tranche.Status.DATA


class Train(InFolder):
    def same_bits(self, a: str, b: str) -> None:
        run_program("diff", a, b)  # which fails where a bit differs

    def test_a_file_trains_as_the_program_does(self) -> None:
        (self.folder / "run.json").write_text(json.dumps(config()))
        run_program("train", "run.json", "--out", "program")
        engine = tranche.train("run.json", settings={"out": "python"}, progress=False)
        self.assertEqual(engine.steps_done, 12)
        self.same_bits("program", "python")
        steps = [
            [json.loads(line) for line in (self.folder / out / "metrics.jsonl").open()]
            for out in ("program", "python")
        ]
        for one, other in zip(*steps, strict=True):
            for key in ("step", "loss", "grad_norm", "validation_loss"):
                self.assertEqual(one.get(key), other.get(key))

    def test_a_dict_is_a_run_file(self) -> None:
        (self.folder / "run.json").write_text(json.dumps(config()))
        run_program("train", "run.json", "--out", "program")
        tranche.train(config(out="python"), progress=False)
        self.same_bits("program", "python")

    def test_steps_one_by_one(self) -> None:
        whole = tranche.train(config(out="whole"), progress=False)
        run = tranche.Run(config(out="steps"))
        with run.engine() as engine:
            results = [engine.step() for _ in range(run.steps)]
            self.assertEqual([r.step for r in results], list(range(1, 13)))
            self.assertEqual(engine.evaluate(), whole.evaluate())
            engine.save()
        self.assertLess(results[-1].loss, results[0].loss)
        self.same_bits("whole", "steps")

    def test_resuming(self) -> None:
        tranche.train(config(out="whole"), progress=False)
        for steps in (5, 12):
            tranche.train(
                config(out="parts"), settings={"steps": steps}, progress=False
            )
        self.same_bits("whole", "parts")

    def test_bytes_in_a_checkpoint(self) -> None:
        with tranche.Run(config(out="out")).engine() as engine:
            engine.step()
            engine.save("mine", b"\0of mine")
            engine.save("none")
        self.assertEqual(tranche.checkpoint_bytes("mine"), b"\0of mine")
        self.assertEqual(tranche.checkpoint_bytes("none"), b"")
        with self.refused(tranche.Status.IO, "nowhere"):
            tranche.checkpoint_bytes("nowhere")


class Examples(InFolder):
    def test_the_classifier(self) -> None:
        words = [sys.executable, str(SOURCE / "examples/classifier.py")]
        done = subprocess.run(words, capture_output=True, text=True)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertRegex(done.stdout, r"(?m)^device +parameters +222144$")
        right = re.search(r"step \d+: (\d+) of 200 right", done.stdout)
        assert right is not None
        self.assertGreater(int(right.group(1)), 190)


class Keys(InFolder):
    def test_values_and_origins(self) -> None:
        run = tranche.Run(config(), settings={"optimizer.params.lr": 0.5})
        run.set("steps", 7)
        self.assertEqual(run.get("steps"), 7)
        self.assertEqual(run.origin("steps"), "python")
        self.assertEqual(run.get("seed"), 3)
        self.assertEqual(run.get("optimizer.params.lr"), 0.5)
        run.set("steps", None)
        self.assertIsNone(run.get("steps"))

    def test_notes_and_warnings_go_where_they_are_asked_for(self) -> None:
        lines: list[tuple[int, str]] = []
        run = tranche.Run(
            config(zero_optimization={"stage": 1, "reduce_bucket_size": 5}),
            messages=lambda level, line: lines.append((level, line)),
        )
        run.resolve()
        self.assertTrue(any("reduce_bucket_size" in line for _, line in lines), lines)


class Errors(InFolder):
    def test_a_missing_file(self) -> None:
        with self.refused(USAGE, "nowhere.json"):
            tranche.train("nowhere.json")

    def test_an_unknown_key_names_the_nearest(self) -> None:
        with self.refused(USAGE, "stepz", "steps"):
            tranche.train(config(stepz=1))
        with self.refused(USAGE, "sead", "seed"):
            tranche.Run(config(), settings={"sead": 1})

    def test_a_budget_that_no_plan_fits(self) -> None:
        with self.refused(tranche.Status.BUDGET):
            tranche.Run(config(memory={"device": 1000})).plan()

    def test_missing_data(self) -> None:
        data = {"format": "csv", "train": ["nowhere.csv"]}
        with self.refused(DATA, "nowhere.csv"):
            tranche.train(config(data=data))

    def test_no_validation_data(self) -> None:
        given = config()
        del given["data"]["validation"], given["evaluation"]
        with tranche.Run(given).engine() as engine, self.refused(USAGE, "validation"):
            engine.evaluate()

    def test_a_closed_object_says_so(self) -> None:
        run = tranche.Run(config())
        engine = run.engine()
        run.close()
        engine.step()  # it keeps what it needs
        engine.close()
        engine.close()
        self.assertTrue(engine.closed)
        with self.refused(USAGE, "the engine is closed"):
            engine.step()
        with self.refused(USAGE, "the run is closed"):
            run.plan()

    def test_a_resolved_run_changes_no_more(self) -> None:
        run = tranche.Run(config())
        run.plan()
        with self.refused(USAGE):
            run.set("steps", 1)

    def test_what_is_no_json(self) -> None:
        with self.assertRaises(TypeError):
            tranche.Run(config(steps=object()))
