"""Callbacks: what they are told, what they may do, and what becomes of what they
raise."""

from __future__ import annotations

import contextlib
import io
from typing import Any

from common import InFolder, config, run_program

import tranche


class Listener(tranche.Callback):
    def __init__(self) -> None:
        self.told: list[Any] = []

    def on_begin(self, engine: tranche.Engine) -> None:
        self.told.append("begin")

    def on_step(self, engine: tranche.Engine, result: tranche.StepResult) -> None:
        self.told.append(result.step)

    def on_evaluation(
        self, engine: tranche.Engine, step: int, result: tranche.Evaluation
    ) -> None:
        self.told.append(("evaluation", step, result))

    def on_end(self, engine: tranche.Engine) -> None:
        self.told.append("end")


class Callbacks(InFolder):
    def test_what_is_told_and_when(self) -> None:
        listener = Listener()
        results: list[tranche.StepResult] = []
        engine = tranche.train(
            config(out="out"), callbacks=[listener, results.append], progress=False
        )
        told = [each[:2] if isinstance(each, tuple) else each for each in listener.told]
        steps: list[Any] = list(range(1, 13))
        for at in (12, 8, 4):
            steps.insert(at, ("evaluation", at))
        self.assertEqual(told, ["begin", *steps, "end"])
        self.assertEqual(listener.told[-2][2], engine.evaluate())
        self.assertEqual([r.step for r in results], list(range(1, 13)))
        self.assertEqual(results[-1].samples, 12 * 16)
        self.assertAlmostEqual(results[-1].lr, 1e-2)

    def test_a_callback_may_ask_and_changes_no_bit(self) -> None:
        class Asks(tranche.Callback):
            sums: list[float] = []

            def on_step(
                self, engine: tranche.Engine, result: tranche.StepResult
            ) -> None:
                weight = engine.tensors["layers.0.weight"]
                self.sums.append(sum(map(sum, weight.read().tolist())))
                engine.evaluate()
                engine.predict([[0.5] * 6])
                if result.step == 5:
                    engine.save("at5")

        tranche.train(config(out="quiet"), progress=False)
        tranche.train(config(out="asked"), callbacks=[Asks()], progress=False)
        run_program("diff", "quiet", "asked")
        self.assertEqual(len(set(Asks.sums)), 12)
        run_program("inspect", "at5")

    def test_what_it_raises_comes_out_and_nothing_is_lost(self) -> None:
        def raises(result: tranche.StepResult) -> None:
            if result.step == 7:
                raise ZeroDivisionError("of mine")

        with self.assertRaisesRegex(ZeroDivisionError, "of mine"):
            tranche.train(config(out="out"), callbacks=[raises], progress=False)
        self.assertIn("step-00000007", run_program("inspect", "out"))
        tranche.train(config(out="out"), progress=False)
        tranche.train(config(out="whole"), progress=False)
        run_program("diff", "whole", "out")

    def test_the_last_step_raises_too(self) -> None:
        def raises(result: tranche.StepResult) -> None:
            if result.step == 12:
                raise ZeroDivisionError

        with self.assertRaises(ZeroDivisionError):
            tranche.train(config(out="out"), callbacks=[raises], progress=False)

    def test_an_early_stop(self) -> None:
        def stops(result: tranche.StepResult) -> None:
            if result.step == 4:
                raise tranche.StopTraining

        engine = tranche.train(config(out="out"), callbacks=[stops], progress=False)
        self.assertEqual(engine.steps_done, 4)
        self.assertIn("step-00000004", run_program("inspect", "out"))

    def test_closing_the_engine_in_a_callback_waits_for_its_call(self) -> None:
        class Closes(tranche.Callback):
            def on_step(
                self, engine: tranche.Engine, result: tranche.StepResult
            ) -> None:
                engine.close()

        engine = tranche.train(config(out="out"), callbacks=[Closes()], progress=False)
        self.assertTrue(engine.closed)

    def test_a_callback_makes_no_steps(self) -> None:
        class Steps(tranche.Callback):
            def on_step(
                self, engine: tranche.Engine, result: tranche.StepResult
            ) -> None:
                engine.step()

        with self.refused(tranche.Status.USAGE, "makes none itself"):
            tranche.train(config(out="out"), callbacks=[Steps()], progress=False)

    def test_rates_from_outside(self) -> None:
        with tranche.Run(config()).engine() as engine:
            engine.set_rate(0.25)
            self.assertEqual(engine.step().lr, 0.25)
            engine.set_rate(None)
            self.assertAlmostEqual(engine.step().lr, 1e-2)
            with self.refused(tranche.Status.USAGE, "group 3"):
                engine.set_rate(0.1, group=3)

    def test_progress_goes_to_standard_output(self) -> None:
        shown, notes = io.StringIO(), io.StringIO()
        with contextlib.redirect_stdout(shown), contextlib.redirect_stderr(notes):
            tranche.train(config(out="out"))
        self.assertIn("model mlp, 163 parameters", notes.getvalue())
        self.assertIn("step 12/12", shown.getvalue())
        self.assertIn("saved: out/checkpoints/step-00000012", shown.getvalue())
        self.assertNotIn("\x1b", shown.getvalue())
