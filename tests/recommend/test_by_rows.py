"""Proposals for a table without an index: which columns, why, and what they cost."""

from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pytest

from hudi_index_service import Column, IndexedTable, open_table
from hudi_index_service.config import ReadSettings
from hudi_index_service.errors import (
    ColumnNotFound,
    ColumnNotIndexable,
    IndexTypeUnknown,
)
from hudi_index_service.maintain.recommend.by_rows import (
    SampledValues,
    Verdict,
    sampled_values,
    verdict_by_values,
)
from hudi_index_service.maintain.recommend.results import ColumnProposal, Proposal
from tests.golden.table import Golden
from tests.indexed import GoldenIndex, OwnTable

MILLION = 1_000_000


@pytest.fixture(scope="module")
def table(golden_index: GoldenIndex) -> IndexedTable:
    """10,000 rows in one base file: unique names, a thousand cities, long texts; no index."""
    return open_table(golden_index("names_of_cities"))


def reasons(proposal: Proposal) -> dict[str, str]:
    return {each.name: each.reason for each in proposal.columns}


def test_selective_columns_are_proposed_with_reason_and_cost(table: IndexedTable) -> None:
    proposal = table.propose()

    assert (proposal.base_files, proposal.rows) == (1, 10_000)
    (index,) = proposal.indexes
    assert (index.name, index.using) == ("by_value", "btree")
    assert [column.name for column in index.columns] == ["id", "name", "city", "amount"]
    assert reasons(proposal) == {
        "id": "the record key",
        "name": "different in each sampled row",
        "city": "about 1,000 values, each in about 10 of 10,000 rows",
        "text": "long texts, 512 bytes on average",
        "amount": "different in each sampled row",
        "odd": "btree cannot hold this type",
        "ts": "the same in all sampled rows",
    }
    costs = {each.name: each.index_bytes for each in proposal.columns}
    assert {name for name in costs if costs[name] is None} == {"text", "odd", "ts"}
    assert proposal.estimate is not None
    proposed = sum(each.index_bytes or 0 for each in proposal.columns if each.using)
    assert proposal.estimate.index_bytes == pytest.approx(proposed, abs=4)


def test_columns_can_be_added_and_left_out(table: IndexedTable) -> None:
    words = Column(name="TEXT", options={"analyzer": "standard", "keyword": "false"})

    proposal = table.propose(add=[words, "ts"], drop=["City", "amount", "id"])

    assert [(each.name, each.using) for each in proposal.indexes] == [
        ("by_value", "btree"),
        ("by_word", "lucene"),
    ]
    by_value, by_word = proposal.indexes
    assert [column.name for column in by_value.columns] == ["name", "ts"]
    assert by_word.columns == (Column(name="text", options=words.options),)
    assert reasons(proposal)["ts"] == "asked for"
    assert reasons(proposal)["city"] == "left out as asked for"


@pytest.mark.parametrize(
    ("propose", "error"),
    [
        (lambda table: table.propose(add=["nothing"]), ColumnNotFound),
        (lambda table: table.propose(drop=["nothing"]), ColumnNotFound),
        (lambda table: table.propose(add=["odd"]), ColumnNotIndexable),
        (lambda table: table.propose(using="nothing"), IndexTypeUnknown),
    ],
)
def test_a_wrong_choice_is_refused(
    propose: Callable[[IndexedTable], Proposal], error: type[Exception], table: IndexedTable
) -> None:
    with pytest.raises(error):
        propose(table)


def test_partition_columns_and_indexed_columns_are_not_proposed(own_table: OwnTable) -> None:
    table = own_table("two_partitions", ["msg"], name="by_value", build=False)

    proposal = table.propose(add=["amount"])

    assert reasons(proposal)["dt"].startswith("it partitions the table")
    assert reasons(proposal)["msg"] == "already in index by_value"
    assert [each.name for each in proposal.indexes] == ["by_value_2"]


def test_fields_of_structs_and_elements_of_arrays_are_looked_at(own_table: OwnTable) -> None:
    table = own_table("nested_types")

    proposal = table.propose(using="lucene")

    schema = table.schema()
    structs = [field.name for field in schema if pa.types.is_struct(field.type)]
    assert structs
    names = set(reasons(proposal))
    assert names.isdisjoint(structs)
    assert all(any(name.startswith(f"{struct}.") for name in names) for struct in structs)


def test_a_table_without_rows_gets_no_proposal(golden: Golden, tmp_path: Path) -> None:
    path = golden("two_partitions").put(tmp_path / "table", "written")
    for file in [*path.glob("*/*.parquet"), *(path / ".hoodie").rglob("*commit*")]:
        file.unlink()

    proposal = open_table(path).propose()

    assert (proposal.indexes, proposal.estimate) == ((), None)
    assert proposal.lines()[-1].startswith("The table has no base files yet")


# --- the rules -------------------------------------------------------------------------------


def verdict(values: pa.Array, rows: int = MILLION) -> Verdict:
    """The verdict on a column of a table with so many rows, sampled in one piece."""
    scan_fraction = ReadSettings().scan_fraction
    return verdict_by_values(values.type, sampled_values([values]), rows, scan_fraction)


@pytest.mark.parametrize(
    ("values", "expected", "words"),
    [
        (pa.array([None] * 1_000, pa.int64()), False, "NULL in all"),
        (pa.array(["a"] * 1_000), False, "the same in all"),
        (pa.array([True, False] * 500), False, "about 2 values"),
        (pa.array([number % 300 for number in range(60_000)]), False, "in nearly every page"),
        (pa.array([number // 200 for number in range(60_000)]), False, "consecutive rows"),
        (pa.array(range(60_000)), True, "different in each"),
        (pa.array([number // 3 for number in range(60_000)]), True, "each in about"),
        (pa.array([f"{number:036}" for number in range(1_000)]), True, "different in each"),
        (pa.array([f"the car {number} is sold" for number in range(1_000)]), False, "long texts"),
        (pa.array([f"New York City {number % 50} NY" for number in range(9_000)]), False, "nearly"),
        (pa.array([b"x" * 100 + bytes([number % 256]) for number in range(900)]), False, "binary"),
        (pa.array([[number, 1] for number in range(1_000)]), True, "each in about"),
    ],
)
def test_what_speaks_for_or_against_a_column(values: pa.Array, expected: bool, words: str) -> None:
    found = verdict(values)
    assert (found.yes, words in found.reason) == (expected, True), found.reason


def test_a_text_that_is_left_out_says_how_to_search_its_words() -> None:
    assert verdict(pa.array([f"the car {number} is sold" for number in range(1_000)])).is_text
    assert not verdict(pa.array(["x" * 300 + str(number) for number in range(1_000)])).is_text

    options = {"analyzer": "standard", "keyword": "false"}
    left_out = ColumnProposal("msg", "string", None, "long texts", options, 1.25, 12_000)
    assert left_out.line() == (
        "no       msg (string): long texts. 1.2 s on one core, 12,000 bytes. "
        "For full-text search: --add msg:analyzer=standard,keyword=false"
    )


def test_a_small_table_has_no_pages_to_skip() -> None:
    assert verdict(pa.array([number % 300 for number in range(60_000)]), rows=60_000).yes


def test_distinct_values_of_a_table_are_estimated_from_a_sample() -> None:
    assert sampled_values([pa.array([1, 2, 2, None]), pa.array([3])]) == SampledValues(
        5, 4, 3, 2, 3, 0.0, 0.0
    )
    unique = sampled_values([pa.array(range(10_000))])
    assert unique.distinct_in(10_000) == 10_000
    assert unique.distinct_in(MILLION) == 100_000  # at least
    cities = sampled_values([pa.array([number % 100 for number in range(10_000)])])
    assert cities.distinct_in(MILLION) == 100
    assert sampled_values([]).distinct_in(MILLION) == 0
