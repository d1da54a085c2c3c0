"""Our own queries: LIKE over terms, and the best rows across several indexes."""

from pathlib import Path
from typing import Any

import lucene
import numpy as np
import pyarrow as pa
import pytest

from tests.native.lucene_index import IndexField, attach, index_batches, open_folder, row_ids

MESSAGE = IndexField("message", "RANKED_TEXT", "message")
WORD = IndexField("word", "KEYWORD", "word")


@pytest.fixture(autouse=True)
def _jvm() -> None:
    attach()


def test_terms_of_maximum_length_match_any_pattern(tmp_path: Path) -> None:
    from hudiindex import TermScan

    index_batches(
        tmp_path, [WORD], [pa.RecordBatch.from_pydict({"word": ["ab", "abc", "é", "xyz"]})]
    )
    query = TermScan("word", lucene.JArray("string")(["=ab"]), 3)
    assert row_ids(open_folder(tmp_path), query) == [0, 1, 3]
    absent = TermScan("other", lucene.JArray("string")(["%"]), 3)
    assert row_ids(open_folder(tmp_path), absent) == []


TEXTS = [
    "new car", "new new car", "old car", "a new red car with many more words than others", "boat",
    "car car car", None, "", "new", "brand new car", "red boat", "fast red car",
]  # fmt: skip


def best(
    folder: Path, text: str, statistics: list[int], k: int, among: list[int] | None = None
) -> Any:
    """(row, score) pairs of the best rows."""
    from hudiindex import RankedSearch, TextQueries
    from org.apache.lucene.analysis.standard import StandardAnalyzer

    words = RankedSearch.words(StandardAnalyzer(), "message", text)
    allowed = np.array(among or [], np.uint32)
    rows, scores = np.empty(k, np.uint32), np.empty(k, np.float32)
    found = RankedSearch.best(
        open_folder(folder),
        TextQueries.any(StandardAnalyzer(), "message", text),
        "message",
        words,
        lucene.JArray("long")(statistics),
        0 if among is None else allowed.ctypes.data,
        len(allowed),
        k,
        rows.ctypes.data,
        scores.ctypes.data,
    )
    return list(zip(rows[:found].tolist(), scores[:found].tolist(), strict=True))


def statistics(folder: Path, text: str) -> np.ndarray:
    from hudiindex import RankedSearch
    from org.apache.lucene.analysis.standard import StandardAnalyzer

    words = RankedSearch.words(StandardAnalyzer(), "message", text)
    return np.array(list(RankedSearch.statistics(open_folder(folder), "message", words)))


def scores_by_lucene(folder: Path, text: str) -> list[tuple[int, float]]:
    from hudiindex import TextQueries
    from org.apache.lucene.analysis.standard import StandardAnalyzer

    found = open_folder(folder).search(TextQueries.any(StandardAnalyzer(), "message", text), 100)
    return [(hit.doc, hit.score) for hit in found.scoreDocs]


@pytest.mark.parametrize(
    "text", ["new car", "red", "boat NEW", "absent car", "absent", "", "car car"]
)
def test_scores_of_parts_equal_those_of_the_whole(tmp_path: Path, text: str) -> None:
    rows = pa.RecordBatch.from_pydict({"message": pa.array(TEXTS)})
    cuts = [rows.slice(0, 4), rows.slice(4, 3), rows.slice(7)]
    index_batches(tmp_path / "whole", [MESSAGE], [rows])
    expected = scores_by_lucene(tmp_path / "whole", text)
    total = sum(_index_and_count(tmp_path / str(n), cut, text) for n, cut in enumerate(cuts))
    assert total.tolist() == statistics(tmp_path / "whole", text).tolist()
    found, start = [], 0
    for number, cut in enumerate(cuts):
        hits = best(tmp_path / str(number), text, total.tolist(), 100)
        found += [(start + row, score) for row, score in hits]
        start += cut.num_rows
    found.sort(key=lambda hit: (-hit[1], hit[0]))
    assert found == expected


def _index_and_count(folder: Path, rows: pa.RecordBatch, text: str) -> np.ndarray:
    index_batches(folder, [MESSAGE], [rows])
    return statistics(folder, text)


def test_best_rows_among_candidates(tmp_path: Path) -> None:
    rows = pa.RecordBatch.from_pydict({"message": pa.array(TEXTS)})
    index_batches(tmp_path, [MESSAGE], [rows])
    hits = scores_by_lucene(tmp_path, "new car")
    total = statistics(tmp_path, "new car").tolist()
    assert best(tmp_path, "new car", total, 3) == hits[:3]
    some = [hit for hit in hits if hit[0] in (0, 2, 5, 11)]
    assert best(tmp_path, "new car", total, 100, [0, 2, 5, 6, 11]) == some
    assert best(tmp_path, "new car", total, 100, [6]) == []
