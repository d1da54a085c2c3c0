"""Counting reads rows where that is sooner than going through all terms of a range of texts."""

from dataclasses import dataclass

import pyarrow as pa
import pytest

from hudi_index_service.optimizer.cost import Constants
from hudi_index_service.predicate import negation_normal_form, parse_predicate
from hudi_index_service.predicate.expression import And, Predicate
from hudi_index_service.read.counting_cost import is_read_sooner
from hudi_index_service.read.row_ids import EachLeaf, RowSet

SCHEMA = pa.schema([("city", pa.string()), ("ref", pa.string()), ("amount", pa.int64())])
STEPS = {"city": 10_000, "ref": 300_000, "amount": 900_000}


@dataclass(frozen=True, slots=True)
class Counted(EachLeaf):
    """Look-ups that take as many steps as their columns say."""

    def estimate(self, asked: Predicate) -> int:
        return min(self.total, max(STEPS[name] for name in asked.columns()))

    def answers(self, conjuncts: And) -> bool:
        return len(conjuncts.columns()) == 1


@pytest.mark.parametrize(
    ("where", "sooner"),
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
def test_what_takes_less(where: str, sooner: bool) -> None:
    predicate = negation_normal_form(parse_predicate(where, SCHEMA))
    lookups = Counted(lambda leaf: RowSet.everything(), 1_000_000)
    assert is_read_sooner(predicate, lookups, 2, Constants()) is sooner
    small = Counted(lambda leaf: RowSet.everything(), 50_000)
    assert not is_read_sooner(predicate, small, 2, Constants())
