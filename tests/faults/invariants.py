"""What holds after any fault: right answers, convergence, and no file that the sweep leaves."""

import json
import os
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from time import time

from hudi_index_service import IndexedTable
from hudi_index_service.index.metadata.segments.store import SegmentStore
from hudi_index_service.storage.store import Storage

INDEX = ".hoodie/.index"

RECORDS = "_service/builds/"

SUMMARIES = "_service/instants/"

SEGMENTS = "_service/segments/"

Shape = frozenset[tuple[str, int, int]]

Expected = Mapping[str, list[str]]
"""Predicate → the ids of the rows for which it is TRUE, sorted."""

Check = Callable[[IndexedTable, BaseException | None], None]
"""What has to hold as soon as several operations have ended: gets what one of them raised."""

A_WHILE = 7200.0
"""Seconds after which a silent build counts as dead and every grace period has ended."""

RECORDS_KEPT = 8 * 24 * 3600.0
"""Seconds after which the sweep removes build records and everything else with a grace period."""


def check_answers(table: IndexedTable, expected: Expected) -> None:
    """Every query gives Spark's answer; the odd ones are counted, which uses the index alone."""
    for number, (where, ids) in enumerate(expected.items()):
        scan = table.scan(where, columns=["id"])
        if number % 2:
            assert scan.count() == len(ids), where
        else:
            assert sorted(scan.to_arrow()["id"].to_pylist()) == ids, where


def check_converged(table: IndexedTable, expected: Expected) -> list[str]:
    """The next build covers everything and another one has nothing to do; the sweep removes what it
    may, and then nothing more. Returns the files that remain below the index."""
    path = Path(table.uri)
    age(path, A_WHILE)
    table.build(strategy="all").raise_for_failures()
    assert table.build(strategy="all", dry_run=True).due == ()
    assert all(each.covered == each.base_files for each in table.status())
    age(path, RECORDS_KEPT)
    table.clean()
    again = table.clean()
    assert (again.removals, again.rewritten) == ((), ())
    assert table.verify(sample=2).problems == ()
    check_answers(table, expected)
    left = files_below_index(path)
    check_no_stray_files(table, left)
    check_summaries(path)
    check_segments(path)
    return left


def check_no_stray_files(table: IndexedTable, left: Iterable[str]) -> None:
    """Entries have a manifest and a data file per base file, and none for removed base files;
    removed indexes have no files at all."""
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
    """Every remaining summary contains existing manifests, unchanged."""
    for summary in (path / INDEX / SUMMARIES).rglob("*.json"):
        for name, text in json.loads(summary.read_bytes())["manifests"].items():
            assert (path / name).read_text() == text


def check_segments(path: Path) -> None:
    """Every remaining segment can be read, and states facts of base files with an entry alone."""
    for folder in (path / INDEX / SEGMENTS).glob("*"):
        entries = "".join(each.read_text() for each in (path / INDEX / folder.name).rglob("*.json"))
        store = SegmentStore(Storage(path), folder.name)
        for file in store.listed():
            for name in store.open(file).files["path"].to_pylist():
                assert f'"{name}"' in entries


def no_check(table: IndexedTable, raised: BaseException | None) -> None:
    """Nothing has to hold at once."""


def everything_is_built(table: IndexedTable, raised: BaseException | None) -> None:
    assert raised is None
    assert table.build(strategy="all", dry_run=True).due == ()


def no_column_is_lost(table: IndexedTable, raised: BaseException | None) -> None:
    if raised is None:
        assert table.build(strategy="all", dry_run=True).due == ()


def no_entry_is_left(table: IndexedTable, raised: BaseException | None) -> None:
    assert list(Path(table.uri, INDEX, "lucene").rglob("manifest-*")) == []


def age(path: Path, seconds: float) -> None:
    """Makes everything below the index look older: builds fall silent, grace periods end."""
    moment = time() - seconds
    for file in (path / INDEX).rglob("*"):
        os.utime(file, (moment, moment))


def files_below_index(path: Path) -> list[str]:
    """The files and empty folders below the index, including those that obstore hides, without what
    differs from run to run: generations, build numbers, random names. Each build leaves a record,
    of which a sweep keeps the newest one's: these files are not listed. Nor are summaries and
    segments: a build that fails to write one has succeeded."""
    found = [name for name, _ in _files_and_empty_folders(path)]
    records = [name for name in found if name.startswith(RECORDS)]
    assert len({name.split("/")[2] for name in records}) <= 1, records
    names = (re.sub(r"-\d+\.json$", ".json", _plain(name)) for name in found)
    return sorted({name for name in names if not name.startswith((RECORDS, SUMMARIES, SEGMENTS))})


def shape(path: Path) -> Shape:
    """What distinguishes one state of the index from another: names, without their random parts,
    sizes, and how many of the files that are there a JSON file names. Build records contain times
    and therefore have no size here."""
    found = dict(_files_and_empty_folders(path))
    files = {name.rpartition("/")[2] for name in found}

    def named(name: str) -> int:
        text = (path / INDEX / name).read_bytes() if name.endswith(".json") else b""
        return sum(each.encode() in text for each in files if each)

    return frozenset(
        (_plain(name), *((0, 0) if name.startswith(RECORDS) else (size, named(name))))
        for name, size in found.items()
    )


def _files_and_empty_folders(path: Path) -> Iterator[tuple[str, int]]:
    root = path / INDEX
    for each in root.rglob("*"):
        if each.is_file():
            yield str(each.relative_to(root)), each.stat().st_size
        elif not any(each.iterdir()):
            yield f"{each.relative_to(root)}/", 0


def _plain(name: str) -> str:
    name = re.sub(r"[0-9a-f]{32}(\.segment)", r"\1", name)
    return re.sub(r"(data-)\d{6}-(.*?)[0-9a-f]{12}", r"\1\2", name)
