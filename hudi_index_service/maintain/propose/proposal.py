"""A proposal: each column of a table with a reason for or against an index, and the indexes that
follow."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

from hudi_index_service.build.estimate import Estimate
from hudi_index_service.index.metadata.definitions import Column
from hudi_index_service.wording import counted


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
        return f"{verdict:<8} {self.name} ({self.type}): {self.reason}.{cost}{self._how_to_add()}"

    def _how_to_add(self) -> str:
        if self.using is not None or not self.options:
            return ""
        return f" For full-text search: --add {column_argument(self.name, self.options)}"


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


def column_argument(name: str, options: Mapping[str, str]) -> str:
    """A column with options as the command line takes it: ``msg:analyzer=standard``."""
    pairs = ",".join(f"{key}={value}" for key, value in options.items())
    return f"{name}:{pairs}" if pairs else name
