"""Counting reads rows where that is faster than walking all terms of a text range."""

from dataclasses import dataclass

import pyarrow as pa
import pytest

from hudi_index_service.optimizer.cost import Constants
from hudi_index_service.predicate import negation_normal_form, parse_predicate
from hudi_index_service.predicate.expression import And, Predicate
from hudi_index_service.read.row_ids import EachLeaf, RowSet
from hudi_index_service.read.slices.counting_cost import prefer_scan_for_count

SCHEMA = pa.schema([("city", pa.string()), ("ref", pa.string()), ("amount", pa.int64())])
STEPS = {"city": 10_000, "ref": 300_000, "amount": 900_000}


@dataclass(frozen=True, slots=True)
class Counted(EachLeaf):
    """Look-ups that take `STEPS` of their column."""

    def estimate(self, predicate: Predicate) -> int:
        return min(self.total, max(STEPS[name] for name in predicate.columns()))

    def answers(self, conjuncts: And) -> bool:
        return len(conjuncts.columns()) == 1


@pytest.mark.parametrize(
    ("where", "reads_rows"),
    [
        ("city = 'a' AND ref >= 'x' AND ref < 'y'", True),
        ("city = 'a' AND ref LIKE '%x'", True),
        ("city = 'a' AND amount > 5", False),
        ("city = 'a'", False),
        ("city = 'a' AND ref = 'x'", False),
        ("ref > 'x'", False),
        ("city = 'a' OR ref > 'x'", False),
    ],
)
def test_count_reads_rows_when_terms_are_many(where: str, reads_rows: bool) -> None:
    predicate = negation_normal_form(parse_predicate(where, SCHEMA))
    lookups = Counted(lambda leaf: RowSet.everything(), 1_000_000)
    assert prefer_scan_for_count(predicate, lookups, 2, Constants()) is reads_rows
    small = Counted(lambda leaf: RowSet.everything(), 50_000)
    assert not prefer_scan_for_count(predicate, small, 2, Constants())
