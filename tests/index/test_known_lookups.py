"""A look-up is made once a query for all entries whose columns are stored alike."""

from collections.abc import Mapping
from dataclasses import replace

import pyarrow as pa
import pytest

from hudi_index_service.index.contract import Answer, ColumnStatistics, StoredColumn
from hudi_index_service.index.known_lookups import MOST_KNOWN, KnownLookups
from hudi_index_service.index.lucene.fields import required_fields
from hudi_index_service.index.lucene.lookup import Lookup, lookup
from hudi_index_service.predicate import negation_normal_form, parse_predicate
from hudi_index_service.predicate.expression import And, Predicate

SCHEMA = pa.schema([("city", pa.string()), ("amount", pa.int64())])


def entry(nulls: int = 0) -> dict[str, StoredColumn]:
    """The columns of an entry, anew each time."""
    statistics = ColumnStatistics(null_count=nulls)
    return {
        field.name: StoredColumn(
            field.name, field.type, required_fields(field.name, field.type, {}), statistics
        )
        for field in SCHEMA
    }


def asked(where: str) -> Predicate:
    return negation_normal_form(parse_predicate(where, SCHEMA))


Known = KnownLookups[Lookup | None]


@pytest.fixture
def made() -> list[Predicate]:
    """What look-ups were made of."""
    return []


@pytest.fixture
def known_lookup(made: list[Predicate]) -> Known:
    def making(leaf: Predicate, columns: Mapping[str, StoredColumn]) -> Lookup | None:
        made.append(leaf)
        return lookup(leaf, columns)

    return KnownLookups(making)


@pytest.mark.parametrize(
    "where", ["city IN ('a', 'b')", "NOT (city IN ('a', 'b'))", "amount > 5", "city LIKE 'a%'"]
)
def test_made_once_for_entries_that_differ_in_their_rows_alone(
    where: str, made: list[Predicate], known_lookup: Known
) -> None:
    leaf = asked(where)
    found = [known_lookup(leaf, entry(nulls)) for nulls in range(5)]
    assert made == [leaf]
    assert all(each == lookup(leaf, entry()) for each in found)


def test_conjuncts_that_are_put_together_anew_are_known(
    made: list[Predicate], known_lookup: Known
) -> None:
    low, high = asked("amount > 5"), asked("amount < 9")
    found = [known_lookup(And((low, high)), entry()) for _ in range(5)]
    assert len(made) == 1
    assert all(each == lookup(And((low, high)), entry()) for each in found)


def test_where_values_were_cut_another_one_is_made(
    made: list[Predicate], known_lookup: Known
) -> None:
    leaf, whole = asked("city = 'a'"), entry()
    statistics = replace(whole["city"].statistics, truncated=1)
    cut = whole | {"city": replace(whole["city"], statistics=statistics)}
    answers = [found.answer for each in (whole, cut) if (found := known_lookup(leaf, each))]
    assert answers == [Answer.EXACT, Answer.SUPERSET]
    assert known_lookup(leaf, {}) is None
    assert len(made) == 3


def test_equal_leaves_of_other_queries_are_none_of_this_one(known_lookup: Known) -> None:
    for _ in range(3 * MOST_KNOWN):
        found = known_lookup(asked("city = 'a'"), entry())
        assert found == lookup(asked("city = 'a'"), entry())
    assert len(known_lookup) <= MOST_KNOWN
