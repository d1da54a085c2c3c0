"""A query prepares a look-up once for all entries with equal column layouts."""

from collections.abc import Mapping

import pyarrow as pa
import pytest

from hudi_index_service.index.contract import Answer, StoredColumn
from hudi_index_service.index.known_lookups import MOST_KNOWN, KnownLookups
from hudi_index_service.index.lucene.fields import required_fields
from hudi_index_service.index.lucene.lookup import LuceneLookup, lookup
from hudi_index_service.predicate import negation_normal_form, parse_predicate
from hudi_index_service.predicate.expression import And, Predicate

SCHEMA = pa.schema([("city", pa.string()), ("amount", pa.int64())])


def entry(nulls: int = 0, truncated: int = 0) -> dict[str, StoredColumn]:
    """The columns of an entry, as new objects each time."""
    return {
        field.name: StoredColumn(
            name=field.name,
            type=str(field.type),
            fields=required_fields(field.name, field.type, {}),
            null_count=nulls,
            truncated=truncated,
        )
        for field in SCHEMA
    }


def predicate_of(where: str) -> Predicate:
    return negation_normal_form(parse_predicate(where, SCHEMA))


Known = KnownLookups[LuceneLookup | None]


@pytest.fixture
def prepared() -> list[Predicate]:
    """The leaves for which look-ups were prepared."""
    return []


@pytest.fixture
def known_lookup(prepared: list[Predicate]) -> Known:
    def preparing(leaf: Predicate, columns: Mapping[str, StoredColumn]) -> LuceneLookup | None:
        prepared.append(leaf)
        return lookup(leaf, columns)

    return KnownLookups(preparing)


@pytest.mark.parametrize(
    "where", ["city IN ('a', 'b')", "NOT (city IN ('a', 'b'))", "amount > 5", "city LIKE 'a%'"]
)
def test_a_look_up_is_prepared_once_for_entries_with_equal_layouts(
    where: str, prepared: list[Predicate], known_lookup: Known
) -> None:
    leaf = predicate_of(where)
    found = [known_lookup(leaf, entry(nulls)) for nulls in range(5)]
    assert prepared == [leaf]
    assert all(each == lookup(leaf, entry()) for each in found)


def test_a_new_conjunction_of_known_leaves_is_recognized(
    prepared: list[Predicate], known_lookup: Known
) -> None:
    low, high = predicate_of("amount > 5"), predicate_of("amount < 9")
    found = [known_lookup(And((low, high)), entry()) for _ in range(5)]
    assert len(prepared) == 1
    assert all(each == lookup(And((low, high)), entry()) for each in found)


def test_entries_with_truncated_values_get_their_own_look_up(
    prepared: list[Predicate], known_lookup: Known
) -> None:
    leaf = predicate_of("city = 'a'")
    answers = [
        found.answer
        for each in (entry(), entry(truncated=1))
        if (found := known_lookup(leaf, each))
    ]
    assert answers == [Answer.EXACT, Answer.SUPERSET]
    assert known_lookup(leaf, {}) is None
    assert len(prepared) == 3


def test_equal_leaves_of_other_queries_do_not_fill_the_cache(known_lookup: Known) -> None:
    for _ in range(3 * MOST_KNOWN):
        found = known_lookup(predicate_of("city = 'a'"), entry())
        assert found == lookup(predicate_of("city = 'a'"), entry())
    assert len(known_lookup) <= MOST_KNOWN
