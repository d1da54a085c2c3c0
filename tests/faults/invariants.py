"""What holds after any fault: answers, convergence, and no file that the sweep does not take."""

import json
import os
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from time import time

from hudi_index_service import IndexedTable

INDEX = ".hoodie/.index"

QUERIES = (
    "amount = 30",
    "msg = 'Buying car 3'",
    "msg LIKE 'Buying car 3%' AND amount < 90",
    "NOT (amount >= 30 OR msg = 'Buying car 3')",
    "id IN ('12', '13')",
    "amount IS NULL",
)

RECORDS = "_service/builds/"

SUMMARIES = "_service/instants/"

Shape = frozenset[tuple[str, int]]

Expected = Mapping[str, list[str]]
"""Predicate → the ids of the rows for which it is TRUE, sorted."""

A_WHILE = 7200.0
"""Seconds after which a silent build is dead and every grace is over."""

RECORDS_KEPT = 8 * 24 * 3600.0
"""Seconds after which the sweep takes records of builds, and everything else that has a grace."""


def check_answers(table: IndexedTable, expected: Expected) -> None:
    """Every query gives Spark's answer; the odd ones are counted, which asks the index alone."""
    for number, (where, ids) in enumerate(expected.items()):
        scan = table.scan(where, columns=["id"])
        if number % 2:
            assert scan.count() == len(ids), where
        else:
            assert sorted(scan.to_arrow()["id"].to_pylist()) == ids, where


def check_converged(table: IndexedTable, expected: Expected) -> list[str]:
    """The next build covers everything, another one has nothing to do; the sweep takes what it
    may take, and then nothing more. Returns what is left below the index."""
    path = Path(table.uri)
    age(path, A_WHILE)
    table.build(strategy="all").raise_for_failures()
    assert table.build(strategy="all").due == ()
    assert all(each.indexed == each.base_files for each in table.status())
    check_answers(table, expected)
    age(path, RECORDS_KEPT)
    table.clean()
    assert table.clean().removals == ()
    assert table.verify(sample=2).problems == ()
    check_answers(table, expected)
    left = files_below_index(path)
    check_nothing_superfluous(table, left)
    check_summaries(path)
    return left


def check_nothing_superfluous(table: IndexedTable, left: Iterable[str]) -> None:
    """Of entries there is a manifest and a data file for each base file, and nothing for files
    that are gone; of indexes that are gone there is nothing at all."""
    entries = Counter(name.rpartition("/")[0] for name in left if not name.startswith("_service/"))
    assert set(entries.values()) <= {2}, entries
    files = [path.name for path in Path(table.uri).glob("*/*.parquet")]
    ids = {tuple(name.removesuffix(".parquet").split("_")[::2]) for name in files}
    assert {(name.split("/")[2], name.split("/")[1]) for name in entries} <= ids
    snapshot = {each.base_files for each in table.status()}
    assert len(entries) >= max(snapshot, default=0)
    assert entries or not table.indexes()
    assert table.indexes() or not entries


def check_summaries(path: Path) -> None:
    """Every summary that the sweep leaves holds manifests that are there, as they are there."""
    for summary in (path / INDEX / SUMMARIES).rglob("*.json"):
        for name, text in json.loads(summary.read_bytes())["manifests"].items():
            assert (path / name).read_text() == text


def age(path: Path, seconds: float) -> None:
    """Lets everything below the index look that much older: builds fall silent, graces end."""
    moment = time() - seconds
    for file in (path / INDEX).rglob("*"):
        os.utime(file, (moment, moment))


def files_below_index(path: Path) -> list[str]:
    """The files and empty folders below the index, those that obstore hides too, with what differs
    from run to run taken out: generations, build numbers, random names. Of builds, which leave a
    record each, only the newest one's is left by a sweep: its files are not listed. Summaries are
    not either: a build that fails when it writes one has succeeded."""
    found = [name for name, _ in _found(path)]
    records = [name for name in found if name.startswith(RECORDS)]
    assert len({name.split("/")[2] for name in records}) <= 1, records
    names = (re.sub(r"-\d+\.json$", ".json", _plain(name)) for name in found)
    return sorted({name for name in names if not name.startswith((RECORDS, SUMMARIES))})


def shape(path: Path) -> Shape:
    """What tells one state of the index from another: names, without what is random in them, and
    sizes. Records of builds have times in them, and so no size."""
    return frozenset(
        (_plain(name), 0 if name.startswith(RECORDS) else size) for name, size in _found(path)
    )


def _found(path: Path) -> Iterator[tuple[str, int]]:
    root = path / INDEX
    for each in root.rglob("*"):
        if each.is_file():
            yield str(each.relative_to(root)), each.stat().st_size
        elif not any(each.iterdir()):
            yield f"{each.relative_to(root)}/", 0


def _plain(name: str) -> str:
    return re.sub(r"(data-)\d{6}-(.*?)[0-9a-f]{12}", r"\1\2", name)
