"""Counting: without listing rows where an entry knows their number; by reading rows where that is
faster than walking all terms of a text range."""

from itertools import groupby

import pyarrow as pa
import pytest

from hudi_index_service import open_table
from hudi_index_service.index.btree.reader import BTreeReader
from hudi_index_service.index.lucene.reader import LuceneReader
from hudi_index_service.optimizer.cost import Constants
from hudi_index_service.predicate import negation_normal_form, parse_predicate
from hudi_index_service.predicate.expression import Predicate, Together
from hudi_index_service.predicate.fold import conjuncts
from hudi_index_service.read.slices.counting import prefer_scan_for_count

SCHEMA = pa.schema([("city", pa.string()), ("ref", pa.string()), ("amount", pa.int64())])
STEPS = {"city": 10_000, "ref": 300_000, "amount": 900_000}


def steps(predicate: Predicate) -> int:
    """Those of a look-up: `STEPS` of its column."""
    return max(STEPS[name] for name in predicate.columns())


def looked_up(where: str) -> list[Predicate]:
    """The conjuncts, those on one column together."""
    predicate = negation_normal_form(parse_predicate(where, SCHEMA))
    groups = [list(each) for _, each in groupby(conjuncts(predicate), lambda leaf: leaf.columns())]
    return [Together(tuple(each)) if each[1:] else each[0] for each in groups]


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
def test_count_reads_rows_when_terms_are_many(where, reads_rows):
    groups = looked_up(where)
    assert prefer_scan_for_count(groups, steps, 1_000_000, 2, Constants()) is reads_rows


@pytest.mark.parametrize("using", ["lucene", "btree"])
@pytest.mark.parametrize(
    "where",
    [
        "msg = 'Buying car 2'",
        "msg <> 'Buying car 2'",
        "msg IN ('Buying car 2', 'Buying car 3', 'none')",
        "amount BETWEEN 100 AND 2000",
        "amount < 100",
        "NOT (amount <=> 153)",
        "msg IS NOT NULL",
    ],
)
def test_rows_of_one_look_up_are_counted_without_listing_them(
    golden_index, monkeypatch, using, where
):
    """In two base files of 10,000 rows."""
    path = golden_index("three_pages_with_logs", ["amount", "msg"], using=using)

    def listed(*_, **__):
        raise AssertionError("row ids are listed")

    with open_table(path) as table:
        scan, never = (
            table.scan(where, use_index=use_index, query_type="read_optimized")
            for use_index in ("auto", "never")
        )
        expected = never.count()
        for reader in (LuceneReader, BTreeReader):
            monkeypatch.setattr(reader, "row_ids", listed)
            monkeypatch.setattr(reader, "candidates", listed)
        assert scan.count() == expected > 0
        assert scan.statistics.rows_returned == expected
        assert scan.statistics.rows_checked == 0
