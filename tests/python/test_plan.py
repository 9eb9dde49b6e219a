"""Plans from Python are those of the program."""

from __future__ import annotations

import json

from common import InFolder, config, run_program

import tranche


class Plans(InFolder):
    def setUp(self) -> None:
        super().setUp()
        (self.folder / "run.json").write_text(json.dumps(config()))
        self.run_ = tranche.Run("run.json")
        self.plan = self.run_.plan()

    def test_the_report_is_the_programs(self) -> None:
        self.assertEqual(self.plan.report(), run_program("plan", "run.json"))

    def test_the_ledger_is_the_programs(self) -> None:
        told = json.loads(run_program("plan", "run.json", "--json"))
        ours = {(row.space, row.category): row.bytes for row in self.plan.ledger}
        theirs = {
            (space, category): size
            for space, rows in told["ledger"].items()
            for category, size in rows.items()
            if size
        }
        self.assertEqual(ours, theirs)
        self.assertEqual(self.plan.steps, told["steps"])
        self.assertEqual(self.plan.to_dict(), told)
        self.assertGreater(len(self.plan.steps), 5)

    def test_numbers(self) -> None:
        self.assertEqual(self.plan.parameters, 16 * 6 + 16 + 3 * 16 + 3)
        self.assertEqual(self.plan.trained, self.plan.parameters)
        self.assertGreater(self.plan.flops, 0)
        self.assertEqual((self.run_.steps, self.run_.ranks), (12, 1))

    def test_an_engine_takes_a_plan_that_was_made(self) -> None:
        with self.run_.engine(self.plan) as engine:
            self.assertIs(engine.plan, self.plan)
            self.assertEqual(engine.step().step, 1)

    def test_a_plan_for_more_ranks_than_there_are(self) -> None:
        wide = {"model_type": "mlp", "layer_sizes": [6, 4096, 3]}
        big = tranche.Run(config(model=wide))
        four = {"ranks": 4, "plan_only": True, "zero_optimization.stage": 3}
        run = tranche.Run(config(model=wide), settings=four)
        plan = run.plan()
        self.assertEqual(run.ranks, 4)
        self.assertLess(
            sum(row.bytes for row in plan.ledger if row.category == "optimizer"),
            sum(row.bytes for row in big.plan().ledger if row.category == "optimizer"),
        )
        with self.refused(tranche.Status.USAGE, "rank"):
            run.engine(plan)
