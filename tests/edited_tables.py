"""Tables whose base file, or whose schema in the commit, is edited by hand: the schema of a commit
can then say something else than the file, as Hudi's own writers leave it after some upgrades. And
base files that cannot be read."""

import json
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from tests.golden.table import Golden

ROWS = 30


def put_with_columns(golden: Golden, path: Path, columns: Mapping[str, tuple[pa.Array, object]]):
    """A copy-on-write table of one base file with 30 rows, ``id`` "0" to "29", and these columns.

    Args:
        columns: By name: the values in the base file, and the column's type in the commit's Avro
            schema.
    """
    golden("wall_clock_times_in_version_6").put(path)
    write_columns(path, {name: values for name, (values, _) in columns.items()})
    set_commit_types(path, {name: avro for name, (_, avro) in columns.items()})


def write_columns(path: Path, columns: Mapping[str, pa.Array]) -> None:
    """Adds columns to the table's only base file, or replaces them."""
    (file,) = path.glob("*.parquet")
    rows = pq.read_table(file)
    for name, values in columns.items():
        if name in rows.column_names:
            rows = rows.drop_columns([name])
        rows = rows.append_column(name, values)
    # Types as a writer without Arrow states them.
    pq.write_table(rows, file, store_schema=False, store_decimal_as_integer=True)
    _forget_checksum(file)


def make_unreadable(base_file: Path) -> Callable[[], object]:
    """Leaves of a file only its length and that it calls itself Parquet. Returns a function that
    repairs it."""
    whole = base_file.read_bytes()
    base_file.write_bytes(b"PAR1" + bytes(len(whole) - 8) + b"PAR1")
    return partial(base_file.write_bytes, whole)


def set_commit_types(path: Path, types: Mapping[str, object]) -> None:
    """Gives columns these types in the schema of the table's last commit; others stay."""
    commit = max((path / ".hoodie").glob("*.commit"))
    metadata = json.loads(commit.read_text())
    schema = json.loads(metadata["extraMetadata"]["schema"])
    fields = {each["name"]: each for each in schema["fields"]}
    fields |= {
        name: {"name": name, "type": ["null", avro], "default": None}
        for name, avro in types.items()
    }
    schema["fields"] = list(fields.values())
    metadata["extraMetadata"]["schema"] = json.dumps(schema)
    commit.write_text(json.dumps(metadata))
    _forget_checksum(commit)


def commit_again(path: Path, types: Mapping[str, object]) -> None:
    """A later commit that wrote nothing, whose schema gives columns these types."""
    last = max((path / ".hoodie").glob("*.commit"))
    later = f"{int(last.stem) + 1000}"
    for ending in ("commit.requested", "inflight"):
        (path / ".hoodie" / f"{later}.{ending}").write_bytes(b"")
    metadata = json.loads(last.read_text())
    (path / ".hoodie" / f"{later}.commit").write_text(
        json.dumps({**metadata, "partitionToWriteStats": {}})
    )
    set_commit_types(path, types)


def _forget_checksum(file: Path) -> None:
    """Removes Hadoop's checksum of a file that has changed."""
    file.with_name(f".{file.name}.crc").unlink(missing_ok=True)
