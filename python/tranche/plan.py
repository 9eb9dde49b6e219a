"""The plan of one optimizer step, and its ledger of bytes."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, NamedTuple

from tranche import _declarations as c
from tranche._handle import Handle
from tranche._library import library

if TYPE_CHECKING:
    from tranche.run import Run


class LedgerRow(NamedTuple):
    """Bytes of one category at the fullest moment of the step."""

    space: str  # "device", "host", "nvme"
    category: str  # "parameters", ..., "total"
    bytes: int


class Plan(Handle):
    """What every optimizer step of a run does, and where every byte lies. Made by
    `Run.plan`; it holds no memory of tensors."""

    _kind = "plan"

    def __init__(self, run: Run) -> None:
        super().__init__()
        self._run = run
        self._create("tr_run_make_plan", run._owner.pointer, keeps=[run._owner])

    @property
    def ledger(self) -> list[LedgerRow]:
        """The bytes of each category, and a row "total" for each space that is used."""
        ledger = self._ask("tr_plan_ledger").contents
        rows = []
        for space in range(c.TR_SPACES):
            name = library().tr_space_name(space).decode()
            for category in range(c.TR_LEDGER_COUNT):
                size = ledger.bytes[space][category]
                if size:
                    word = library().tr_ledger_name(category).decode()
                    rows.append(LedgerRow(name, word, size))
            if ledger.total[space]:
                rows.append(LedgerRow(name, "total", ledger.total[space]))
        return rows

    @property
    def parameters(self) -> int:
        """Elements of all parameters."""
        return int(self._ask("tr_plan_parameters"))

    @property
    def trained(self) -> int:
        """Elements of the parameters that are not frozen."""
        return int(self._ask("tr_plan_trained"))

    @property
    def flops(self) -> float:
        """Floating-point operations of one step on one rank."""
        return float(self._ask("tr_plan_flops"))

    @property
    def steps(self) -> list[dict[str, Any]]:
        """The steps of the plan in their order, as `tranche plan --json` has them."""
        steps: list[dict[str, Any]] = self.to_dict()["steps"]
        return steps

    def to_dict(self) -> dict[str, Any]:
        """The whole plan, as `tranche plan --json` prints it."""
        plan: dict[str, Any] = json.loads(self._text("tr_run_print_plan_json"))
        return plan

    def report(self) -> str:
        """The plan as a text for people, as `tranche plan` prints it."""
        return self._text("tr_run_print_plan")

    def _text(self, function: str) -> str:
        return self._run._print(function, self._owner.pointer)
