"""Hudi tables written without Spark: copy-on-write, not partitioned, of table version 6, whose
timeline is JSON. Each commit writes one file group anew, or a further one, as an upsert does."""

import json
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from time import time
from uuid import NAMESPACE_URL, uuid5

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

_PROPERTIES = {
    "hoodie.table.name": "bench",
    "hoodie.table.type": "COPY_ON_WRITE",
    "hoodie.table.version": "6",
    "hoodie.timeline.layout.version": "1",
    "hoodie.table.timeline.timezone": "UTC",
    "hoodie.archivelog.folder": "archived",
    "hoodie.table.base.file.format": "PARQUET",
    "hoodie.table.recordkey.fields": "id",
    "hoodie.table.precombine.field": "ts",
    "hoodie.table.keygenerator.class": "org.apache.hudi.keygen.NonpartitionedKeyGenerator",
    "hoodie.table.partition.fields": "",
    "hoodie.populate.meta.fields": "true",
}

_FIELDS = [("id", "string"), ("customer", "string"), ("amount", "long"), ("ts", "long")]
_AVRO = {
    "type": "record",
    "name": "bench",
    "fields": [{"name": name, "type": ["null", kind], "default": None} for name, kind in _FIELDS],
}


@dataclass
class Table:
    """A table that this process writes.

    Attributes:
        path: Its base path.
        rows: Of each base file.
        groups: How many file groups it has at most; commits write them in turn.
        links: Whether all commits have the base file of the first, by hard links, for large ones.
        commits: How many it has.
    """

    path: Path
    rows: int = 200
    groups: int = 1
    links: bool = False
    commits: int = 0
    _first: Path | None = None
    _last: datetime = field(default=datetime.min.replace(tzinfo=UTC))

    @property
    def name(self) -> str:
        """The last part of its path."""
        return self.path.name

    @property
    def uri(self) -> str:
        """As the service spells it."""
        return str(self.path)

    @property
    def instant(self) -> str:
        """The last one."""
        return f"{self._last:%Y%m%d%H%M%S}{self._last.microsecond // 1000:03}"

    def create(self, at: datetime | None = None) -> None:
        """Creates the table, with its first commit, as `commit`."""
        hoodie = self.path / ".hoodie"
        (hoodie / "archived").mkdir(parents=True)
        lines = [f"{name}={value}\n" for name, value in sorted(_PROPERTIES.items())]
        (hoodie / "hoodie.properties").write_text("".join(lines))
        marker = "commitTime=0\npartitionDepth=0\n"
        (self.path / ".hoodie_partition_metadata").write_text(marker)
        self.commit(at)

    def commit(self, at: datetime | None = None) -> float:
        """Writes a file group.

        Args:
            at: The time of the instant; now, if absent.

        Returns:
            The time at which the commit was complete, in seconds since 1970.
        """
        # Two instants of a table are a millisecond apart at least.
        self._last = max(at or datetime.now(UTC), self._last + timedelta(milliseconds=1))
        instant = self.instant
        group = self.commits % self.groups
        id = f"{uuid5(NAMESPACE_URL, f'{self.path}/{group}')}-0"
        file = f"{id}_{group}-0-0_{instant}.parquet"
        size = self._write(file, instant, group)
        hoodie = self.path / ".hoodie"
        (hoodie / f"{instant}.commit.requested").touch()
        (hoodie / f"{instant}.inflight").touch()
        whole = hoodie / f".{instant}.commit.new"
        whole.write_text(json.dumps(self._metadata(id, file, size)))
        whole.rename(hoodie / f"{instant}.commit")
        self.commits += 1
        return time()

    def _write(self, file: str, instant: str, group: int) -> int:
        if self._first is not None:
            (self.path / file).hardlink_to(self._first)
            return self._first.stat().st_size
        first, rows = group * self.rows, self.rows
        numbers = pa.array(range(rows), pa.int64())
        keys = _texts("k", pc.add(numbers, first), digits=9)
        columns = {
            "_hoodie_commit_time": pa.repeat(instant, rows),
            "_hoodie_commit_seqno": _texts(f"{instant}_0_", numbers),
            "_hoodie_record_key": keys,
            "_hoodie_partition_path": pa.repeat("", rows),
            "_hoodie_file_name": pa.repeat(file, rows),
            "id": keys,
            "customer": _texts("customer", pc.bit_wise_and(pc.multiply(numbers, 7919), 1023)),
            "amount": pc.add(pc.bit_wise_and(pc.multiply(numbers, 31), 8191), self.commits),
            "ts": pa.repeat(self.commits, rows),
        }
        whole = self.path / f".{file}.new"
        pq.write_table(pa.table(columns), whole, compression="snappy", store_schema=False)
        written = whole.rename(self.path / file)
        if self.links:
            self._first = written
        return written.stat().st_size

    def _metadata(self, id: str, file: str, size: int) -> dict[str, object]:
        stats = {
            "fileId": id,
            "path": file,
            "partitionPath": "",
            "prevCommit": "null",
            "numWrites": self.rows,
            "numInserts": self.rows,
            "totalWriteBytes": size,
            "fileSizeInBytes": size,
        }
        return {
            "partitionToWriteStats": {"": [stats]},
            "compacted": False,
            "extraMetadata": {"schema": json.dumps(_AVRO)},
            "operationType": "UPSERT",
        }


def _texts(start: str, numbers: pa.Array, digits: int = 1) -> pa.Array:
    padded = pc.utf8_lpad(numbers.cast(pa.string()), digits, "0")
    return pc.binary_join_element_wise(start, padded, "")
