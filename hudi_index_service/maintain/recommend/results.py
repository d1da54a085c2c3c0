"""What is recommended, as objects, as JSON, and as text: advice by the history of queries, and a
proposal by a sample of rows."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

from hudi_index_service.build.estimate import Estimate
from hudi_index_service.index.metadata.definitions import Column
from hudi_index_service.wording import counted


@dataclass(frozen=True, slots=True)
class BuildCost:
    """The estimated cost of a build.

    Attributes:
        files, read_bytes: Number of base files, and the bytes of the indexed columns in them.
        seconds, index_bytes: Time and size for the columns of all indexes, since an entry contains
            them all; None if neither a build nor a sample tells them.
        exact: Whether there were builds of exactly these columns; otherwise a sample was built.
    """

    files: int
    read_bytes: int
    seconds: float | None
    index_bytes: int | None
    exact: bool


@dataclass(frozen=True, slots=True)
class IndexAdvice:
    """Columns worth indexing.

    Attributes:
        columns: Columns to index together, since the same queries filter by them.
        using: The index type.
        defined_by: Indexes already defined on all of them, which only have to be built.
        shapes: Shapes of the queries that scanned.
        queries: Number of queries that scanned, weighted by age.
        scan_ms, rows, scanned_rows: Means per query: milliseconds, matching rows, and rows
            evaluated against the predicate.
        index_ms: Estimated milliseconds per query with the index, by the optimizer's model.
        saves_ms: Estimated saving per query.
        build: Cost of the build, for all columns of the table's entries including these.
        pays_after: Number of queries after which the build has paid off; None if its time is
            unknown.
    """

    columns: tuple[str, ...]
    using: str
    defined_by: tuple[str, ...]
    shapes: tuple[str, ...]
    queries: float
    scan_ms: float
    rows: float
    scanned_rows: float
    index_ms: float
    saves_ms: float
    build: BuildCost
    pays_after: int | None

    def lines(self) -> list[str]:
        """The advice as text."""
        names = ", ".join(self.columns)
        action = (
            f"Build index {self.defined_by[0]}"
            if self.defined_by
            else f"Create an index on {names}"
        )
        seconds, size = self.build.seconds, self.build.index_bytes
        duration = "an unknown time" if seconds is None else f"about {seconds:,.1f} s"
        amount = "an unknown number of" if size is None else f"about {size:,}"
        payoff = (
            ""
            if self.pays_after is None
            else f"; it pays off after {counted(self.pays_after, 'query')}"
        )
        return [
            f"{action}: {self.queries:.0f} queries scanned by {names}, in {self.scan_ms:,.1f} ms "
            f"each, for {self.rows:,.1f} of {self.scanned_rows:,.0f} rows "
            f"({'; '.join(self.shapes)}).",
            f"  By index they take about {self.index_ms:,.1f} ms, and save {self.saves_ms:,.1f} "
            f"ms. Building it takes {duration} and {amount} bytes for "
            f"{counted(self.build.files, 'base file')}{payoff}.",
        ]


@dataclass(frozen=True, slots=True)
class UnusedAdvice:
    """Columns for which no query used an index.

    Attributes:
        index: The index's name.
        columns: Unused columns of the index.
        whole: Whether these are all of its columns.
        since: Time at which its last entry was built, ISO 8601 in UTC.
        queries: Number of queries recorded since the day after.
        entries, index_bytes: Number of its entries, and the bytes of their data files, including
            other indexes' columns.
    """

    index: str
    columns: tuple[str, ...]
    whole: bool
    since: str
    queries: int
    entries: int
    index_bytes: int

    def lines(self) -> list[str]:
        """The advice as text."""
        names = ", ".join(self.columns)
        action = f"Drop index {self.index}" if self.whole else f"Drop {names} from {self.index}"
        return [
            f"{action}: none of {counted(self.queries, 'query')} since it was built ({self.since}) "
            f"used an index on {names}. {counted(self.entries, 'entry')} with all columns: "
            f"{self.index_bytes:,} bytes."
        ]


@dataclass(frozen=True, slots=True)
class WriterAdvice:
    """A setting for the writer.

    Attributes:
        key, value: Key and value for the write config.
        present: Present state, from the footers.
        evidence: Numbers by name.
        saves_ms: Estimated saving per query that reads rows by index, by the optimizer's model.
        why: Reason, in one sentence.
    """

    key: str
    value: str
    present: str
    evidence: Mapping[str, float]
    saves_ms: float
    why: str

    def lines(self) -> list[str]:
        """The advice as text."""
        return [
            f"Write with {self.key}={self.value} ({self.present} now): {self.why}",
            f"  It saves about {self.saves_ms:,.1f} ms per query that reads rows by index, once "
            "the files are rewritten.",
        ]


@dataclass(frozen=True, slots=True)
class Advice:
    """Advice on one table.

    Attributes:
        uri: The table's base path.
        queries: Number of recorded queries it is based on.
        indexes: Columns worth indexing, the largest saving first.
        unused: Indexes, or columns of indexes, that no query used.
        writer: Writer settings that would make row reads cheaper.
    """

    uri: str
    queries: int
    indexes: tuple[IndexAdvice, ...]
    unused: tuple[UnusedAdvice, ...]
    writer: tuple[WriterAdvice, ...]

    def to_dict(self) -> dict[str, Any]:
        """As `hudi-index advise --output json` prints it, with the attributes' names."""
        return asdict(self)

    def lines(self) -> list[str]:
        """As `hudi-index advise` prints it."""
        lines = [line for index in self.indexes for line in index.lines()]
        lines += [line for unused in self.unused for line in unused.lines()]
        lines += [line for setting in self.writer for line in setting.lines()]
        basis = f"Based on {self.queries} recorded queries on {self.uri}."
        return [*lines, basis] if lines else [basis, "Nothing to advise."]


@dataclass(frozen=True, slots=True)
class ColumnProposal:
    """A column.

    Attributes:
        using: The index type to index it with; None to leave it out.
        options: The column's options; of one left out, those with which it could be added.
        reason: Why, in a few words.
        seconds, index_bytes: What it costs, in all base files: the time on one core; None if
            unknown, as of a column that no index can hold.
    """

    name: str
    type: str
    using: str | None
    reason: str
    options: Mapping[str, str] = field(default_factory=dict)
    seconds: float | None = None
    index_bytes: int | None = None

    def line(self) -> str:
        """The column as text."""
        cost = ""
        if self.seconds is not None and self.index_bytes is not None:
            cost = f" {self.seconds:,.1f} s on one core, {self.index_bytes:,} bytes."
        verdict = "no" if self.using is None else self.using
        hint = ""
        if self.using is None and self.options:
            column = Column(name=self.name, options=dict(self.options))
            hint = f" For full-text search: --add {column.argument}"
        return f"{verdict:<8} {self.name} ({self.type}): {self.reason}.{cost}{hint}"


@dataclass(frozen=True, slots=True)
class IndexProposal:
    """An index to be defined."""

    name: str
    using: str
    columns: tuple[Column, ...]

    def line(self) -> str:
        """The index as text."""
        names = ", ".join(column.name for column in self.columns)
        return f"Index {self.name} ({self.using}) on {names}."


@dataclass(frozen=True, slots=True)
class Proposal:
    """Which columns of a table to index.

    Attributes:
        uri: The table's base path.
        base_files, bytes, rows: Number of base files, their bytes, and about how many rows they
            have.
        columns: All columns, in the schema's order.
        indexes: The indexes to define; empty if none is proposed.
        estimate: What building them costs; None if none is proposed.
    """

    uri: str
    base_files: int
    bytes: int
    rows: int
    columns: tuple[ColumnProposal, ...]
    indexes: tuple[IndexProposal, ...]
    estimate: Estimate | None

    def to_dict(self) -> dict[str, Any]:
        """As `hudi-index init --output json` prints it, with the attributes' names."""
        return {
            "uri": self.uri,
            "base_files": self.base_files,
            "bytes": self.bytes,
            "rows": self.rows,
            "columns": [asdict(each) for each in self.columns],
            "indexes": [
                {
                    "name": each.name,
                    "using": each.using,
                    "columns": [
                        {"name": column.name, "options": column.options} for column in each.columns
                    ],
                }
                for each in self.indexes
            ],
            "estimate": None if self.estimate is None else self.estimate.to_dict(),
        }

    def lines(self) -> list[str]:
        """As `hudi-index init` prints it, without the costs of the whole."""
        lines = [
            f"{self.uri}: {counted(self.base_files, 'base file')}, {self.bytes:,} bytes, about "
            f"{counted(self.rows, 'row')}.",
            *(each.line() for each in self.columns),
            *(each.line() for each in self.indexes),
        ]
        if not self.base_files:
            lines.append("The table has no base files yet: run it again when it has rows.")
        elif not self.indexes:
            lines.append("No index is proposed.")
        return lines
