"""How a table is made: what is written in which way, and what has index entries.

A layout is the recipe of a table: with its family and its seed it makes the same table again.
"""

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from hypothesis import strategies as st
from pyspark.sql import SparkSession

from hudi_index_service import Column, open_table
from tests.hudi_tables import NO_METADATA_TABLE, hudi_options, write
from tests.proof.families import Family, Place

# Hudi would add rows to a small base file; here each write makes its own files.
NEW_FILES = {"hoodie.parquet.small.file.limit": "0"}
PARTITIONS = 2
KEYS = pa.schema(
    [("id", pa.string()), ("row", pa.int32()), ("part", pa.string()), ("ts", pa.int64())]
)


@dataclass(frozen=True)
class Write:
    """One write.

    Attributes:
        operation: Hudi's write operation.
        keys: The first key, and the one after the last.
        partitions: The number of partitions, from the first, that rows are written to.
        build: Whether the index is built afterwards.
        grow: Whether columns are added to the index before that.
    """

    operation: str
    keys: tuple[int, int]
    partitions: int = PARTITIONS
    build: bool = False
    grow: bool = False


@dataclass(frozen=True)
class Layout:
    """A table's recipe.

    Attributes:
        name: The shape, one of `SHAPES`.
        version: The table version.
        timestamps: How Parquet stores them.
        analyzer: Whether strings are analyzed too, and keys indexed.
        words_only: … and messages are not indexed as whole values.
        unindexed: One in this many columns is not indexed; 0: all are indexed.
        segments: What becomes of segments after builds, one of `SEGMENTS`.
        seed: The seed of the rows.
    """

    name: str
    table_type: str
    partitioned: bool
    writes: tuple[Write, ...]
    hive_style: bool
    codec: str
    page_bytes: int
    row_group_bytes: int
    dictionary: bool
    meta_fields: bool
    version: str
    timestamps: str
    analyzer: bool
    words_only: bool
    unindexed: int
    segments: str
    seed: int

    @property
    def has_logs(self) -> bool:
        """Whether file groups have log files."""
        return self.table_type == MOR and any(
            each.operation != "bulk_insert" for each in self.writes
        )

    @property
    def searchable(self) -> bool:
        """Whether an index holds the words of the messages."""
        return self.analyzer and not self.unindexed


SEGMENTS = ("as built", "missing", "damaged", "of each build")
"""Segments may be lost or damaged; those that later ones replace may be there still."""

COW, MOR = "COPY_ON_WRITE", "MERGE_ON_READ"
FIRST_HALF, SECOND_HALF = Write("bulk_insert", (0, 150)), Write("bulk_insert", (150, 320))

# By shape: the table's type, whether it is partitioned, what is written. Each has only two file
# groups or a few more, since every file costs time in each of thousands of queries.
SHAPES: dict[str, list[tuple[str, bool, tuple[Write, ...]]]] = {
    "covered": [
        (COW, True, (Write("bulk_insert", (0, 320), build=True),)),
        (COW, False, (FIRST_HALF, replace(SECOND_HALF, build=True))),
        (MOR, False, (FIRST_HALF, replace(SECOND_HALF, build=True))),
    ],
    "partly built": [
        (COW, False, (replace(SECOND_HALF, build=True), FIRST_HALF)),
        (COW, True, (Write("bulk_insert", (0, 320), build=True), Write("upsert", (0, 30), 1))),
        (MOR, False, (replace(SECOND_HALF, build=True), FIRST_HALF)),
    ],
    "with logs": [
        (
            MOR,
            True,
            (
                Write("bulk_insert", (0, 330), build=True),
                Write("upsert", (20, 60), partitions=1),
                Write("delete", (10, 25), partitions=1),
            ),
        ),
    ],
    "some columns": [
        (
            COW,
            False,
            (
                Write("bulk_insert", (0, 240), build=True),
                Write("upsert", (0, 40)),
                Write("bulk_insert", (240, 330), build=True, grow=True),
            ),
        ),
    ],
}


def layouts(shape: str) -> st.SearchStrategy[Layout]:
    """Recipes of one of `SHAPES`."""
    return st.builds(
        lambda made, **others: Layout(shape, *made, **others),
        st.sampled_from(SHAPES[shape]),
        hive_style=st.booleans(),
        codec=st.sampled_from(("gzip", "snappy", "zstd", "uncompressed")),
        page_bytes=st.sampled_from((200, 1_000, 1 << 20)),
        row_group_bytes=st.sampled_from((4_000, 120 << 20)),
        dictionary=st.booleans(),
        meta_fields=st.booleans(),
        version=st.sampled_from(("6", "8", "9")),
        timestamps=st.sampled_from(("TIMESTAMP_MICROS", "INT96")),
        analyzer=st.booleans(),
        words_only=st.booleans(),
        unindexed=st.just(3 if shape == "some columns" else 0),
        segments=st.sampled_from(SEGMENTS),
        seed=st.integers(0, 2**32),
    )


def make_table(spark: SparkSession, family: Family, layout: Layout, folder: Path) -> Path:
    """Writes the table of the recipe, and builds its index as the recipe says."""
    path = folder / "table"
    options = hudi_options(
        "proof",
        layout.table_type,
        partition_column="part" if layout.partitioned else None,
        **NO_METADATA_TABLE,
        **NEW_FILES,
        **{
            "hoodie.parquet.compression.codec": layout.codec,
            "hoodie.parquet.page.size": str(layout.page_bytes),
            "hoodie.parquet.block.size": str(layout.row_group_bytes),
            "hoodie.parquet.dictionary.enabled": str(layout.dictionary).lower(),
            "hoodie.parquet.outputtimestamptype": layout.timestamps,
            "hoodie.populate.meta.fields": str(layout.meta_fields).lower(),
            "hoodie.write.table.version": layout.version,
            "hoodie.datasource.write.hive_style_partitioning": str(layout.hive_style).lower(),
            "hoodie.bulkinsert.shuffle.parallelism": "1",
        },
    )
    earlier: dict[Path, bytes] = {}
    for version, each in enumerate(layout.writes):
        staged = folder / f"{version}.parquet"
        pq.write_table(_rows(family, layout, each, version), staged)
        rows = spark.read.parquet(str(staged)).coalesce(1)
        write(rows, path, options, each.operation)
        if version == 0 or each.grow:
            _define(path, family, layout, grow=each.grow)
        if each.build:
            with open_table(path) as table:
                table.build(strategy="all").raise_for_failures()
            _treat_segments(path, layout.segments, earlier)
    return path


def _treat_segments(path: Path, how: str, earlier: dict[Path, bytes]) -> None:
    """Does to segments what the recipe says.

    Args:
        earlier: Those after earlier builds.
    """
    for segment in (path / ".hoodie/.index/_service/segments").rglob("*.segment"):
        content = segment.read_bytes()
        if how == "missing":
            segment.unlink()
        elif how == "damaged":
            middle = len(content) // 2
            segment.write_bytes(content[:middle] + b"damage" + content[middle + 6 :])
        else:
            earlier[segment] = content
    if how == "of each build":
        for segment, content in earlier.items():
            segment.write_bytes(content)


def _rows(family: Family, layout: Layout, each: Write, version: int) -> pa.Table:
    """The rows of one write. `row` is unique among all rows ever written."""
    keys = [k for k in range(*each.keys) if _partition(k, layout) < each.partitions]
    values = family.rows(layout.seed + version, len(keys))
    columns: dict[str, list[Any]] = {
        "id": [f"key {k}" for k in keys],
        "row": [k * 10 + version for k in keys],
        "part": [f"p{_partition(k, layout)}" for k in keys],
        "ts": [version] * len(keys),
    }
    schema = pa.schema([*KEYS, *family.schema])
    columns |= {name: [row[name] for row in values] for name in family.schema.names}
    return pa.table([pa.array(columns[f.name], f.type) for f in schema], schema=schema)


def _partition(key: int, layout: Layout) -> int:
    return key % PARTITIONS if layout.partitioned else 0


def _define(path: Path, family: Family, layout: Layout, *, grow: bool) -> None:
    places = list(family.predicate_places if layout.analyzer else family.places.values())
    left_out = places[:: layout.unindexed] if layout.unindexed else []
    columns_to_index = [
        Column(name=place.name, options=_options(place, layout))
        for place in places
        if place not in left_out
    ]
    with open_table(path) as table:
        if grow:
            table.alter_index("proof", add=[place.name for place in left_out[::2]])
        else:
            table.create_index("proof", columns_to_index)


def _options(place: Place, layout: Layout) -> dict[str, str]:
    """Some tables have their strings analyzed, and some of these `msg` without whole values."""
    if not (layout.analyzer and place.type_name == "string"):
        return {}
    only_words = layout.words_only and place.name == "msg"
    return {"analyzer": "standard"} | ({"keyword": "false"} if only_words else {})
