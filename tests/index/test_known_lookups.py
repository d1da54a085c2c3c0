"""A query prepares a look-up once for all entries with equal column layouts."""

import pyarrow as pa
import pytest

from hudi_index_service.index.contract import Answer, StoredColumn
from hudi_index_service.index.leaf_lookup import MOST_KNOWN, Columns
from hudi_index_service.index.lucene.fields import required_fields
from hudi_index_service.index.lucene.lookup import LuceneLookup, LuceneLookups
from hudi_index_service.predicate import negation_normal_form, parse_predicate
from hudi_index_service.predicate.expression import Predicate

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


class Counted(LuceneLookups):
    """Counts the look-ups that are prepared."""

    prepared = 0

    def made(self, predicate: Predicate, columns: Columns) -> LuceneLookup | None:
        self.prepared += 1
        return super().made(predicate, columns)


@pytest.mark.parametrize(
    "where",
    [
        "city IN ('a', 'b')",
        "NOT (city IN ('a', 'b'))",
        "amount > 5",
        "city LIKE 'a%'",
        "amount > 5 AND amount < 9",
    ],
)
def test_a_look_up_is_prepared_once_for_entries_with_equal_layouts(where: str) -> None:
    lookups, anew = Counted(), LuceneLookups().made(predicate_of(where), entry())
    found = [lookups(predicate_of(where), entry(nulls)) for nulls in range(5)]
    assert lookups.prepared == 1
    assert found == [anew] * 5


def test_entries_with_truncated_values_get_their_own_look_up() -> None:
    lookups, leaf = Counted(), predicate_of("city = 'a'")
    found = [lookups(leaf, each) for each in (entry(), entry(truncated=1), {})]
    assert [each and each.answer for each in found] == [Answer.EXACT, Answer.SUPERSET, None]
    assert lookups.prepared == 3


def test_equal_leaves_of_other_queries_do_not_fill_the_cache() -> None:
    lookups = LuceneLookups()
    for number in range(3 * MOST_KNOWN):
        assert lookups(predicate_of(f"amount = {number}"), entry()) is not None
        assert lookups(predicate_of("city = 'a'"), entry()) is not None
    assert len(lookups) <= MOST_KNOWN
