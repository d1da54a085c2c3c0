"""Makes the archive of Java classes with which a JVM starts faster (see `jvm`).

Java writes it when Java exits. So a process of its own, which is this module run as a program,
builds and reads a small index and ends. Which classes that loads decides how fast later processes
start, never what they answer.
"""

import subprocess
import sys
from collections.abc import Sequence
from decimal import Decimal
from errno import EACCES, EPERM, EROFS
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import pyarrow as pa

from hudi_index_service.arrow import array_of_scalars, numbers_array, scalar, texts_array
from hudi_index_service.errors import NativeModuleMissing, PermissionDenied, StorageFailed
from hudi_index_service.index.contract import ColumnSpec, PackedIndex, StoredColumn
from hudi_index_service.index.factory import index_type
from hudi_index_service.index.lucene import jvm
from hudi_index_service.index.lucene.full_text import matches
from hudi_index_service.index.packed_file import pack
from hudi_index_service.index.routed import Routed
from hudi_index_service.predicate import parse_predicate
from hudi_index_service.predicate.expression import AnalyzedText, In, Match, Predicate

_ROWS = 2_000
_TEXT = {"analyzer": "standard", "ranked": "true"}

_CONDITIONS = (
    "word = 'word7'",
    "word IN ('word1', 'word2', 'absent')",
    "word BETWEEN 'word2' AND 'word4'",
    "word LIKE 'word1%'",
    "word LIKE '%rd1%'",
    "word IS NULL",
    "NOT word = 'word7'",
    "number = 7",
    "number IN (1, 2, 3)",
    "number BETWEEN 5 AND 10",
    "number <> 7",
    "amount = 7.00",
    "amount BETWEEN 5 AND 10",
    "array_contains(tags, 'tag7')",
    "match(text, 'word7 text')",
    "match_any(text, 'word7 absent')",
    "match_phrase(text, 'text of')",
    "match_prefix(text, 'wor')",
    "match_fuzzy(text, 'wrd7')",
)
_NO_RIGHTS = (EACCES, EPERM, EROFS)
_REMEDY = "Run it as the user who installed hudi-index-pylucene, with enough free disk space."


def make_class_archive() -> Path:
    """Writes the archive for the installed PyLucene and the JDK in use, in place of an earlier one.
    Processes that use the earlier one keep it. Returns its path.

    Raises:
        NativeModuleMissing: PyLucene or Java is missing, or this Java writes no archive.
        PermissionDenied: the folder in which PyLucene is installed cannot be written.
        StorageFailed: the same, for another reason than rights.
    """
    path = jvm.classes_path(jvm.require())
    try:
        # In the same folder, so that a rename publishes it.
        with TemporaryDirectory(dir=path.parent, prefix=f".{path.name}-") as folder:
            content, draft = _recorded(Path(folder) / "recorded"), Path(folder) / path.name
            jvm.store_classes(content, draft)
            draft.replace(path)
    except OSError as error:
        kind = PermissionDenied if error.errno in _NO_RIGHTS else StorageFailed
        raise kind(f"{path} cannot be written: {error}.", remedy=_REMEDY) from error
    return path


def _recorded(path: Path) -> bytes:
    """Java's archive, written to `path` by a process of its own."""
    done = subprocess.run(
        [sys.executable, "-m", "hudi_index_service.index.lucene.class_archive", str(path)],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
    )
    if done.returncode == 0 and path.is_file():
        return path.read_bytes()
    reason = (done.stdout + done.stderr).strip().splitlines()[-1:] or ["it gave no reason"]
    raise NativeModuleMissing(
        f"Java wrote no archive of Lucene's classes: {reason[0]}.",
        remedy="Use a JDK with an archive of its own classes (lib/server/classes.jsa). Without "
        "one, everything works, but processes start more slowly.",
    )


def _data() -> pa.Table:
    numbers = range(_ROWS)
    words = [None if number % 50 == 0 else f"word{number % 97}" for number in numbers]
    tags = texts_array([f"tag{number % 31}" for number in numbers], pa.string())
    starts = np.arange(_ROWS + 1, dtype=np.int32)
    money = pa.decimal128(38, 2)
    return pa.table(
        {
            "word": texts_array(words, pa.string()),
            "text": texts_array([f"the text of {word}" for word in words], pa.string()),
            "number": numbers_array(np.array(numbers)),
            "amount": array_of_scalars([scalar(Decimal(each), money) for each in numbers], money),
            "tags": pa.ListArray.from_arrays(numbers_array(starts), tags),
        }
    )


def _built(data: pa.Table, folder: Path) -> tuple[PackedIndex, Sequence[StoredColumn]]:
    kind, files = index_type("lucene"), folder / "files"
    files.mkdir()
    specs = [
        ColumnSpec(
            field.name,
            field.type,
            kind.fields(field.name, field.type, _TEXT if field.name == "text" else {}),
        )
        for field in data.schema
    ]
    builder = kind.builder(specs, files, memory_mb=16)
    for batch in data.to_batches():
        builder.add(batch)
    built = builder.finish()
    path = folder / "index"
    index = pack(built.files, path).at(path, rows=built.rows)
    return index, [StoredColumn.of(spec, built.statistics[spec.name]) for spec in specs]


def _look_up(leaf: Predicate, index: PackedIndex, columns: Sequence[StoredColumn]) -> None:
    kind = index_type("lucene")
    reader = kind.open(index, columns)
    readers = kind.together([reader])
    if readers is not None:
        first = np.zeros(1, dtype=np.int32)
        readers.few_rows(leaf, first, _ROWS)
        readers.without_rows(leaf, first)
        if isinstance(leaf, In):
            values = Routed(np.arange(len(leaf.values), dtype=np.int32), first, first + np.int32(1))
            readers.rows_of_values(leaf, first, values, _ROWS)
    reader.estimate(leaf)
    reader.row_bounds(leaf)
    reader.candidates(leaf, _ROWS)
    reader.narrowed(leaf, reader.row_ids(leaf))
    if isinstance(leaf, Match):
        reader.ranked(leaf)
    reader.close()


def main(archive: Path) -> None:
    """Has Java write an archive, and ends the process."""
    jvm.attach(recorded=archive)
    data = _data()
    with TemporaryDirectory() as folder:
        index, columns = _built(data, Path(folder))
        texts = {"text": [AnalyzedText("standard", matches)]}
        for condition in _CONDITIONS:
            leaf = parse_predicate(condition, data.schema, texts=lambda: texts)
            _look_up(leaf, index, columns)
    from java.lang import System

    System.exit(0)  # when Python exits, Java does not


if __name__ == "__main__":
    main(Path(sys.argv[1]))
