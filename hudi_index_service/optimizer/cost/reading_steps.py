"""What reading a base file costs beside a look-up, which ends where it would cost more."""

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from hudi_index_service.optimizer.cost.constants import MIB, TESTS_OF_TEXT, Constants
from hudi_index_service.optimizer.cost.pages import PAGE_ROWS
from hudi_index_service.predicate.expression import In, Not, Predicate
from hudi_index_service.predicate.fold import fold

_A_NUMBER = 8.5  # bytes at most, levels included

_PAGE_MIB = 0.05  # of 20,000 values, compressed: 0.02 to 0.3, depending on the values


@dataclass(frozen=True, slots=True)
class ReadingSteps:
    """Costs in steps of a look-up, each of a row id or a term. Make it by `unknown` or `of`.

    Attributes:
        page: Reading one more page of a column.
        row: Picking a value of one more row, and testing it.
        lookup: A look-up that finds no row.
        scan: Testing all rows; None if that is unknown.
        columns: Testing one column of all rows; empty if that is unknown.
    """

    page: int
    row: int
    lookup: int = 0
    scan: int | None = None
    columns: Mapping[str, int] = field(default_factory=dict)

    @classmethod
    def unknown(cls, constants: Constants) -> "ReadingSteps":
        """Those of pages of a usual size, none of which is kept."""
        return cls(
            _page(constants, _PAGE_MIB),
            constants.steps(constants.value_ms),
            constants.steps(constants.lookup_ms),
        )

    @classmethod
    def of(
        cls,
        constants: Constants,
        predicate: Predicate,
        rows: int,
        sizes: Mapping[str, tuple[int, int]],
        *,
        alone: bool = False,
    ) -> "ReadingSteps":
        """Those of a base file of so many rows, if the row reader tests the whole predicate.

        Args:
            predicate: In negation normal form.
            sizes: For each of its columns, the bytes of pages that are not kept, and of all its
                pages before compression.
            alone: Whether a scan reads no other file by the same call.
        """
        pages = max(1.0, len(sizes) * rows / PAGE_ROWS)
        columns = {
            name: constants.steps(constants.testing_ms(to_read / MIB, _tests(rows, plain)))
            for name, (to_read, plain) in sizes.items()
        }
        a_test = rows * constants.tested_value_ms / constants.step_ms

        def of_leaf(leaf: Predicate) -> float:
            return _sum(columns, leaf) + a_test * _comparisons(leaf)

        scan: float = fold(predicate, of_leaf, _halved, math.fsum)
        return cls(
            _page(constants, sum(to_read for to_read, _ in sizes.values()) / MIB / pages),
            constants.steps(constants.value_ms),
            constants.steps(constants.lookup_ms),
            round(scan + (constants.scan_ms / constants.step_ms if alone else 0)),
            columns,
        )

    def ruling_out(self, share: float) -> int | None:
        """The most steps of the first look-up, of which a share of all rows is expected to be left;
        None if there is no limit."""
        return None if self.scan is None else max(0, round((1 - share) * self.scan) - self.lookup)

    def testing(self, leaf: Predicate, rows: int) -> int:
        """Testing a leaf on some rows: each by itself, or all of its columns."""
        singly = self.row * rows
        return min(singly, round(_sum(self.columns, leaf))) if self.columns else singly


def _tests(rows: int, plain: int) -> float:
    """Values to test, a text that is not in a dictionary as several."""
    return rows * (TESTS_OF_TEXT if plain > rows * _A_NUMBER else 1)


def _comparisons(leaf: Predicate) -> float:
    """Tests in the time of finding a value among those of a list; 0 without one. Among 10,000
    numbers, it took 30 times as long as one test."""
    listed = leaf.operand if isinstance(leaf, Not) else leaf
    return 2 * math.log2(max(1, len(listed.values))) if isinstance(listed, In) else 0.0


def _page(constants: Constants, mib: float) -> int:
    return max(1, constants.steps(constants.page_ms + mib * constants.picked_mib_ms))


def _sum(columns: Mapping[str, int], leaf: Predicate) -> float:
    return math.fsum(columns[name] for name in leaf.columns())


def _halved(conjuncts: Iterable[float]) -> float:
    """Testing an AND: each further conjunct on half as many rows."""
    cheapest_first = enumerate(sorted(conjuncts))
    return math.fsum(math.ldexp(each, -before) for before, each in cheapest_first)
