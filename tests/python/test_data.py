"""Data of Python's: what may be given, that the same numbers train the same bits
however they are given, and what is refused."""

from __future__ import annotations

import array
import traceback
import unittest
from typing import Any

from common import (
    CLASSES,
    FEATURES,
    InFolder,
    config,
    needs_numpy,
    needs_torch,
    samples,
    text_model,
)

import tranche

USAGE, DATA = tranche.Status.USAGE, tranche.Status.DATA


def losses(train: Any, given: dict[str, Any] | None = None, **more: Any) -> list[float]:
    own = given or config()
    own.pop("data", None)
    with tranche.Run(own, train=train, **more).engine() as engine:
        return [engine.step().loss for _ in range(6)]


class Iterable:
    def __init__(self, items: list[Any]) -> None:
        self.items = items

    def __iter__(self) -> Any:
        return iter(self.items)


class Several(list[Any]):
    """A sequence that is asked for several samples at once, as PyTorch's may be."""

    def __getitems__(self, index: list[int]) -> list[Any]:
        return [self[i] for i in index]


class Forms(InFolder):
    def test_all_forms_train_the_same(self) -> None:
        rows, labels = samples()
        pairs = list(zip(rows, labels, strict=True))
        named = [{"labels": label, "features": row} for row, label in pairs]
        wanted = losses((rows, labels))
        self.assertLess(wanted[-1], wanted[0])
        for given in (
            {"features": rows, "labels": labels},
            ([array.array("d", row) for row in rows], array.array("h", labels)),
            pairs,
            named,
            Several(pairs),
            iter(pairs),
            Iterable(pairs),
        ):
            self.assertEqual(losses(given), wanted, type(given))

    @needs_numpy
    def test_numpy(self) -> None:
        import numpy

        rows, labels = samples()
        wanted = losses((rows, labels))
        for kind, label_kind in (("f4", "i8"), ("f8", "u1"), (">f4", "i2")):
            features = numpy.array(rows, dtype=kind)
            given = (features, numpy.array(labels, dtype=label_kind))
            self.assertEqual(losses(given), wanted)
            self.assertEqual(losses(list(zip(*given, strict=True))), wanted)
        strided = numpy.array(rows, dtype="f4", order="F")
        self.assertEqual(losses((strided, numpy.array(labels))), wanted)

    @needs_torch
    def test_torch(self) -> None:
        import torch
        from torch.utils.data import TensorDataset

        rows, labels = samples()
        wanted = losses((rows, labels))
        given = (torch.tensor(rows), torch.tensor(labels))
        self.assertEqual(losses(given), wanted)
        self.assertEqual(losses(TensorDataset(*given)), wanted)
        self.assertEqual(losses((given[0].requires_grad_(), given[1])), wanted)

    def test_windows_of_tokens(self) -> None:
        tokens = [[(i * 5 + t * 3) % 32 for t in range(9)] for i in range(40)]
        columns = ([row[:-1] for row in tokens], [row[1:] for row in tokens])
        wanted = losses(columns, text_model())
        self.assertEqual(losses(tokens, text_model()), wanted)
        named = {"input_ids": columns[0], "labels": columns[1]}
        self.assertEqual(losses(named, text_model()), wanted)

    def test_a_label_of_none_counts_nothing(self) -> None:
        rows, labels = samples()
        masked = [-100 if i % 2 else label for i, label in enumerate(labels)]
        given = config(train_batch_size=64)
        del given["data"]
        with tranche.Run(given, train=(rows, masked)).engine() as engine:
            self.assertEqual(engine.step().targets, 32)

    def test_validation(self) -> None:
        rows, labels = samples()
        given = config(out="out")
        del given["data"]
        engine = tranche.train(
            given,
            train=(rows, labels),
            validation=(rows[:10], labels[:10]),
            progress=False,
        )
        self.assertEqual(engine.evaluate().samples, 10)
        self.assertEqual(engine.evaluate(4).samples, 4)

    def test_resuming_on_other_data_is_refused(self) -> None:
        rows, labels = samples()
        given = config(out="out", steps=3, evaluation={})
        del given["data"]
        tranche.train(given, train=(rows, labels), progress=False)
        rows[17][2] += 1
        with self.refused(tranche.Status.IO, "data"):
            tranche.train(
                given, train=(rows, labels), settings={"steps": 5}, progress=False
            )


class Wrong(InFolder):
    def test_columns_of_other_lengths(self) -> None:
        rows, labels = samples()
        with self.refused(DATA, "features 64, labels 63"):
            losses((rows, labels[1:]))

    def test_no_samples(self) -> None:
        for given in ([], ([], []), iter(())):
            with self.refused(DATA, "sample"):
                losses(given)

    def test_another_shape_than_the_model(self) -> None:
        rows, labels = samples()
        with self.refused(DATA, "features", "5 values"):
            losses(([row[1:] for row in rows], labels))

    def test_a_sample_of_another_shape(self) -> None:
        rows, labels = samples()
        pairs = list(zip(rows, labels, strict=True))
        pairs[20] = (rows[20][1:], labels[20])
        with self.refused(DATA, "sample 20", f"[{FEATURES - 1}]", f"[{FEATURES}]"):
            losses(pairs)

    def test_a_sample_that_lacks_a_tensor(self) -> None:
        rows, labels = samples()
        named = [
            {"features": r, "labels": y} for r, y in zip(rows, labels, strict=True)
        ]
        del named[7]["labels"]
        with self.refused(DATA, "sample 7", "labels"):
            losses(named)

    def test_labels_out_of_range(self) -> None:
        for wrong in (CLASSES, -1, -99, 2**31, -(2**40)):
            rows, labels = samples()
            labels[33] = wrong
            with self.refused(DATA, str(wrong), "labels"):
                losses((rows, labels))
        tokens = [[t % 32 for t in range(9)] for _ in range(40)]
        tokens[11][4] = 32
        with self.refused(DATA, "sample 11", "32 is not in [0, 32)"):
            losses(tokens, text_model())

    def test_labels_that_are_no_integers(self) -> None:
        rows, labels = samples()
        with self.refused(DATA, "labels", "integers"):
            losses((rows, [float(label) for label in labels]))

    def test_what_is_no_number(self) -> None:
        rows, labels = samples()
        rows[0][0] = "one"  # type: ignore[call-overload]
        with self.refused(DATA, "features"):
            losses((rows, labels))

    def test_what_is_no_data(self) -> None:
        for given in (5, "data.csv"):
            with self.refused(USAGE, type(given).__name__):
                losses(given)
        with self.refused(DATA, "a tuple of 4"):
            losses(([1], [1], [1], [1]))
        with self.refused(DATA, "windows"):
            losses([[1.5, 2.5]])

    def test_what_a_source_raises_comes_out(self) -> None:
        class Failing(list[Any]):
            def __getitem__(self, index: Any) -> Any:
                if index == 30:
                    raise LookupError("sample 30 is on no disk")
                return super().__getitem__(index)

        rows, labels = samples()
        names: list[str] = []
        try:
            losses(Failing(zip(rows, labels, strict=True)))
        except LookupError as error:
            self.assertIn("on no disk", str(error))
            names = [frame.name for frame in traceback.extract_tb(error.__traceback__)]
        self.assertEqual(names[-1:], ["__getitem__"])

    def test_a_failed_step_changes_nothing(self) -> None:
        rows, labels = samples()
        fails = [True]

        class Once(list[Any]):
            def __getitem__(self, index: Any) -> Any:
                if fails and index == 40:
                    raise OSError("once")
                return super().__getitem__(index)

        given = config(train_batch_size=64)
        del given["data"]
        pairs = list(zip(rows, labels, strict=True))
        with tranche.Run(given, train=Once(pairs)).engine() as engine:
            with self.assertRaisesRegex(OSError, "once"):
                engine.step()
            self.assertEqual(engine.steps_done, 0)
            fails.clear()
            first = engine.step().loss
        with tranche.Run(given, train=pairs).engine() as engine:
            self.assertEqual(engine.step().loss, first)


if __name__ == "__main__":
    unittest.main()
