"""What reading a base file costs beside a look-up, which ends where it would cost more."""

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from hudi_index_service.optimizer.cost.constants import MIB, Constants
from hudi_index_service.optimizer.cost.pages import PAGE_ROWS
from hudi_index_service.predicate.expression import Predicate
from hudi_index_service.predicate.fold import fold

_PAGE_MIB = 0.05  # of 20,000 values, compressed: 0.02 to 0.3, depending on the values


@dataclass(frozen=True, slots=True)
class ReadingSteps:
    """Costs in steps of a look-up, each of a row id or a term. Make it by `unknown` or `of`.

    Attributes:
        page: Reading one more page of a column.
        row: Picking a value of one more row, and testing it.
        scan: Testing all rows; None if that is unknown.
        columns: Testing one column of all rows; empty if that is unknown.
    """

    page: int
    row: int
    scan: int | None = None
    columns: Mapping[str, int] = field(default_factory=dict)

    @classmethod
    def unknown(cls, constants: Constants) -> "ReadingSteps":
        """Those of pages of a usual size, none of which is kept."""
        return cls(_page(constants, _PAGE_MIB), round(constants.value_ms / constants.step_ms))

    @classmethod
    def of(
        cls, constants: Constants, predicate: Predicate, rows: int, sizes: Mapping[str, int]
    ) -> "ReadingSteps":
        """Those of a base file of so many rows, if the row reader tests the whole predicate.

        Args:
            predicate: In negation normal form.
            sizes: The bytes of each of its columns whose pages are not kept.
        """
        pages = max(1.0, len(sizes) * rows / PAGE_ROWS)
        columns = {
            name: round(constants.testing_ms(size / MIB, rows) / constants.step_ms)
            for name, size in sizes.items()
        }
        scan: float = fold(predicate, lambda leaf: _sum(columns, leaf), _halved, math.fsum)
        return cls(
            _page(constants, sum(sizes.values()) / MIB / pages),
            round(constants.value_ms / constants.step_ms),
            round(scan),
            columns,
        )

    def testing(self, leaf: Predicate, rows: int) -> int:
        """Testing a leaf on some rows: each by itself, or all of its columns."""
        singly = self.row * rows
        return min(singly, round(_sum(self.columns, leaf))) if self.columns else singly


def _page(constants: Constants, mib: float) -> int:
    return max(1, int((constants.page_ms + mib * constants.picked_mib_ms) / constants.step_ms))


def _sum(columns: Mapping[str, int], leaf: Predicate) -> float:
    return math.fsum(columns[name] for name in leaf.columns())


def _halved(conjuncts: Iterable[float]) -> float:
    """Testing an AND: each further conjunct on half as many rows."""
    cheapest_first = enumerate(sorted(conjuncts))
    return math.fsum(math.ldexp(each, -before) for before, each in cheapest_first)
