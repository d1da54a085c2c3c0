"""Ranked full-text search on a real table: scores are those of one Lucene index of all its rows."""

import json
import shutil
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from hudi_index_parquet import ParquetReadError

from hudi_index_service import Column, IndexedTable, open_table
from hudi_index_service.errors import (
    ConfigInvalid,
    IndexDefinitionInvalid,
    PredicateInvalid,
    PredicateUnsupported,
)
from hudi_index_service.index.lucene import jvm
from hudi_index_service.read.base_file.row_reader import RowReader
from tests.golden.recipes.texts import ROWS, TEXTS, text_of
from tests.indexed import indexed
from tests.read.damage import overwrite_keeping_mtime, truncate

RANKED = {"analyzer": "standard", "ranked": "true"}


@pytest.fixture(scope="module")
def table(golden, tmp_path_factory) -> IndexedTable:
    """An indexed base file, one with a log file on top of it, and one that is not indexed."""
    texts = golden("searched_texts")
    path = texts.put(tmp_path_factory.mktemp("ranked"), "two base files")
    table = indexed(path, [Column(name="msg", options=RANKED), "amount"], name="by_words")
    texts.put(path)
    return table


@pytest.fixture(scope="module")
def expected() -> "Scores":
    return Scores([text_of(key) for key in range(ROWS)])


class Scores:
    """Lucene's own scores over one index of all texts."""

    def __init__(self, texts: list[str | None]) -> None:
        jvm.attach()
        from org.apache.lucene.analysis.standard import StandardAnalyzer
        from org.apache.lucene.document import Document, Field, TextField
        from org.apache.lucene.index import DirectoryReader, IndexWriter, IndexWriterConfig
        from org.apache.lucene.search import IndexSearcher
        from org.apache.lucene.store import ByteBuffersDirectory

        directory = ByteBuffersDirectory()
        writer = IndexWriter(directory, IndexWriterConfig(StandardAnalyzer()))
        for text in texts:
            document = Document()
            if text is not None:
                document.add(TextField("f", text, Field.Store.NO))
            writer.addDocument(document)
        writer.close()
        self.searcher = IndexSearcher(DirectoryReader.open(directory))

    def of(self, text: str, *, all_words: bool = False) -> dict[int, float]:
        """Key → score."""
        from hudiindex import TextQueries
        from org.apache.lucene.analysis.standard import StandardAnalyzer

        make = TextQueries.all if all_words else TextQueries.any
        found = self.searcher.search(make(StandardAnalyzer(), "f", text), ROWS)
        return {hit.doc: hit.score for hit in found.scoreDocs}


def scored(found: pa.Table) -> dict[int, float]:
    scores = found["_score"].to_pylist()
    assert scores == sorted(scores, reverse=True)
    return dict(zip(map(int, found["id"].to_pylist()), scores, strict=True))


@pytest.mark.parametrize("text", ["new car", "boat", "tag42 old", "NEW", "absent", "", "new new"])
def test_scores_are_those_of_one_index_over_all_rows(table, expected, text):
    assert scored(table.search("msg", text, k=ROWS, columns=["id"])) == expected.of(text)
    both = table.search("MSG", text, k=ROWS, columns=["id"], words="all")
    assert scored(both) == expected.of(text, all_words=True)


@pytest.mark.parametrize("damage", [overwrite_keeping_mtime, truncate])
def test_damage_to_an_open_index_changes_no_score(table, expected, tmp_path, damage):
    copy = Path(shutil.copytree(table.uri, tmp_path / "t"))
    opened = open_table(copy)
    assert scored(opened.search("msg", "new car", k=ROWS, columns=["id"]))
    for data in copy.rglob("*.pack"):
        damage(data)
    assert scored(opened.search("msg", "new car", k=ROWS, columns=["id"])) == expected.of("new car")
    assert scored(opened.search("msg", "boat", k=ROWS, columns=["id"])) == expected.of("boat")


def test_the_best_rows_come_first(table, expected):
    whole = sorted(expected.of("new car").values(), reverse=True)
    for k in (1, 7, 100):
        found = table.search("msg", "new car", k=k)
        assert found["_score"].to_pylist() == pytest.approx(whole[:k])
        assert found.column_names == [*table.schema().names, "_score"]
        for row in found.to_pylist():
            assert row["msg"] == text_of(int(row["id"]))


@pytest.mark.parametrize(
    "where", ["amount = 3", "amount < 5 -- not more", "msg LIKE '%o%'", "id IS NULL"]
)
def test_where_filters_rows_but_changes_no_score(table, expected, where):
    matching = set(map(int, table.scan(where, columns=["id"]).to_arrow()["id"].to_pylist()))
    found = table.search("msg", "new car", k=ROWS, where=where, columns=["id"])
    every = expected.of("new car")
    assert scored(found) == {key: every[key] for key in every if key in matching}


def test_rows_that_cannot_be_read_one_by_one_are_scanned(table, monkeypatch):
    found = table.search("msg", "new car", k=7)

    batches = RowReader.batches

    def fails(self, rows, **options):
        if not isinstance(rows, range):
            raise ParquetReadError("as if")
        return batches(self, rows, **options)

    monkeypatch.setattr(RowReader, "batches", fails)
    assert table.search("msg", "new car", k=7) == found


def test_earlier_snapshots_have_their_own_scores(table):
    instants = [each.requested for each in table.hudi_table.completed_instants()]
    first, second, updated, last = instants
    first_texts = Scores([text_of(key) for key in range(80)])
    found = table.search("msg", "new car", k=ROWS, columns=["id"], as_of=first)
    assert scored(found) == first_texts.of("new car")
    assert scored(table.search("msg", "new car", k=ROWS, columns=["id"], as_of=last)) == scored(
        table.search("msg", "new car", k=ROWS, columns=["id"])
    )
    # Changes in log files show in the snapshot, but not in read-optimized queries.
    where = "ts = 1"
    arguments = {"where": where, "columns": ["id", "ts"], "k": ROWS}
    assert table.search("msg", "new car", as_of=second, **arguments).num_rows == 0
    now = table.search("msg", "new car", as_of=updated, **arguments)
    assert set(map(int, now["id"].to_pylist())) <= set(range(100, 120))
    assert now.num_rows > 0
    alone = table.search("msg", "new car", query_type="read_optimized", **arguments)
    assert alone.num_rows == 0
    base_files = table.search("msg", "new car", k=ROWS, query_type="read_optimized", columns=["id"])
    before = Scores([TEXTS[key % len(TEXTS)] for key in range(ROWS)])
    assert scored(base_files) == before.of("new car")


def test_search_on_the_command_line(table, command):
    def search(*arguments):
        printed = command("search", table.uri, "msg", *arguments, "-o", "json")
        return [json.loads(line) for line in printed.splitlines()]

    def in_json(rows):
        """The rows, with the digits that JSON has of a 32-bit score."""
        return [
            {**row, "_score": float(str(np.float32(row["_score"])))} for row in rows.to_pylist()
        ]

    best = in_json(table.search("msg", "new car", k=3, columns=["id", "amount"]))
    assert search("new car", "--limit", "3", "--columns", "id, amount") == best
    narrowed = table.search("msg", "new car", where="amount = 3", words="all", columns=["id"])
    arguments = ["new car", "--where", "amount = 3", "--words", "all", "--columns", "id"]
    assert search(*arguments) == in_json(narrowed)
    first = table.hudi_table.completed_instants()[0].requested
    earlier = in_json(table.search("msg", "new car", as_of=first, columns=["id"]))
    assert search("new car", "--as-of", first, "--columns", "id") == earlier
    assert search("absent") == []
    assert "_score" in command("search", table.uri, "msg", "car", "--columns", "id")


def test_rows_of_equal_score_have_a_stable_order(table):
    first = table.search("msg", "car", k=40, columns=["id", "amount"])
    assert table.search("msg", "car", k=40, columns=["id", "amount"]) == first
    assert table.search("msg", "car", k=9, columns=["id", "amount"]) == first.slice(0, 9)


def test_a_search_needs_a_ranked_column(golden, tmp_path):
    table = indexed(
        golden("searched_texts").put(tmp_path, "one base file"),
        [Column(name="msg", options={"analyzer": "standard"})],
        name="words",
    )
    with pytest.raises(
        PredicateUnsupported, match=r'(?s)cannot|No index can rank.*"ranked": "true"'
    ):
        table.search("msg", "car")
    table.alter_index("words", options={"msg": RANKED})
    before = table.search("msg", "car", k=80)
    assert before.num_rows == 28, "analyzed again, since the entry has no lengths"
    table.refresh("words").raise_for_failures()
    assert table.search("msg", "car", k=80) == before


@pytest.mark.parametrize(
    ("arguments", "kind"),
    [
        ({"k": 0}, ConfigInvalid),
        ({"k": 10_001}, ConfigInvalid),
        ({"words": "some"}, ConfigInvalid),
        ({"as_of": "yesterday"}, ConfigInvalid),
        ({"query_type": "incremental"}, ConfigInvalid),
        ({"where": "amount = 3) OR (amount = 4"}, PredicateInvalid),
        ({"where": "amount ="}, PredicateInvalid),
        ({"column": "id"}, PredicateUnsupported),
    ],
)
def test_invalid_search_arguments_are_refused(table, arguments, kind):
    with pytest.raises(kind):
        table.search(**{"column": "msg", "text": "car", **arguments})


def test_ranking_needs_an_analyzer(table):
    with pytest.raises(IndexDefinitionInvalid, match="without an analyzer"):
        table.create_index("r", [Column(name="msg", options={"ranked": "true"})])
    with pytest.raises(IndexDefinitionInvalid, match="ranked is 'maybe'"):
        table.create_index("r", [Column(name="msg", options={**RANKED, "ranked": "maybe"})])


def test_partition_columns_have_the_values_of_the_path(golden, tmp_path):
    stays = golden("stays_in_its_partition")
    table = indexed(stays.put(tmp_path), [Column(name="msg", options=RANKED)])

    by_spark = {row["id"]: row["dt"] for row in stays.rows().to_pylist()}
    found = table.search("msg", "buying", k=30, columns=["id", "dt"]).to_pylist()
    assert {row["id"]: row["dt"] for row in found} == by_spark
    # The row's own value is 2026-01-02.
    stayed = table.search("msg", "buying", k=30, where="dt = '2026-01-02'", columns=["id"])
    assert "0" not in stayed["id"].to_pylist()
    assert stayed.num_rows == 10
