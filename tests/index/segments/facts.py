"""Segments of small made-up base files."""

from collections.abc import Mapping

import pyarrow as pa

from hudi_index_service.build.entry.column_facts import Extremes, ValueKeys
from hudi_index_service.index.contract import ColumnSpec, ColumnStatistics, StoredColumn
from hudi_index_service.index.metadata.manifest import Manifest
from hudi_index_service.index.metadata.segments.bounds import is_routed
from hudi_index_service.index.metadata.segments.segment import Facts, facts_of
from tests.index.golden import make

PARTITION = "p1"


def path_of(number: int) -> str:
    """The path of a base file."""
    return f"{PARTITION}/f{number:04d}-0_0-1-0_{make.INSTANT}.parquet"


def manifest(number: int, columns: Mapping[str, pa.Array]) -> Manifest:
    """The manifest of a base file with these values."""
    (path,) = make.FOLDER.rglob("manifest-0001.json")
    golden = Manifest.from_json(path.read_bytes(), source=str(path))
    rows = max(map(len, columns.values()), default=0)
    named = golden.base_file.model_copy(
        update={"path": path_of(number), "length": 1000 + number, "rows": rows}
    )
    stored = tuple(_stored(name, values) for name, values in columns.items())
    return golden.model_copy(update={"base_file": named, "columns": stored})


def _stored(name: str, values: pa.Array) -> StoredColumn:
    extremes = Extremes()
    extremes.add(values)
    return StoredColumn.of(
        ColumnSpec(name, values.type, ("keyword",)),
        ColumnStatistics(values.null_count, None),
        minimum=extremes.minimum,
        maximum=extremes.maximum,
    )


def facts(number: int, columns: Mapping[str, pa.Array], *, routed: bool = True) -> Facts:
    """The facts of a base file with these values."""
    keys = {}
    for name, values in columns.items():
        if routed and is_routed(values.type):
            keys[name] = ValueKeys()
            keys[name].add(values)
    pairs = {name: known for name, each in keys.items() if (known := each.pairs())}
    return facts_of(manifest(number, columns), pairs)
