"""Advice that makes a table's queries cheaper, with numeric evidence from the history of queries,
the definitions, the entries, and the footers of base files. Changes nothing."""

from dataclasses import asdict, dataclass
from typing import Any

from hudi_index_service.maintain.advise.new_indexes import IndexAdvice
from hudi_index_service.maintain.advise.unused_indexes import UnusedAdvice
from hudi_index_service.maintain.advise.writing import WriterAdvice

__all__ = ["Advice", "IndexAdvice", "UnusedAdvice", "WriterAdvice"]


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
