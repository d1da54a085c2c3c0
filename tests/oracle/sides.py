"""The processes of both sides of the comparison."""

import os
import sys
from pathlib import Path
from typing import Any

from benchmarks.bench_process import ContestantProcess
from dev import oracle
from dev.paths import ROOT


class Side(ContestantProcess):
    """A side's process.

    Args:
        name: ``oracle`` or ``working tree``.
        folder: For what it remembers between queries.
    """

    def __init__(self, name: str, folder: Path) -> None:
        own = {"XDG_STATE_HOME": str(folder), "HUDI_INDEX_CACHE_FOLDER": str(folder / "cache")}
        frozen = (Path(sys.executable), ROOT, {**os.environ, "PYTHONPATH": str(ROOT)})
        if name == "oracle":
            frozen = (oracle.PYTHON, oracle.made(), oracle.environment())
        python, where, variables = frozen
        super().__init__("tests.oracle.runner", frozen=(python, where, {**variables, **own}))
        found = self.request({"where is": "the package"})["package"]
        if Path(found).parent.parent != where:
            raise RuntimeError(f"the {name} has the package of {found}")

    def ask(
        self, table: str, questions: list[dict[str, Any]], **options: Any
    ) -> list[dict[str, Any]]:
        """The answers: ``value``, ``error`` (its code), ``accesses``, ``work``.

        Args:
            questions: ``where``; ``column``, which tells rows apart; ``method``, one of `METHODS`;
                ``forced``: rows are read by page, however small the table is.
            options: ``time_zone``, ``as_of``, ``query_type``, ``storage_options``.
        """
        request = {"table": table, "questions": questions, "options": options}
        answers: list[dict[str, Any]] = self.request(request)["answers"]
        return answers
