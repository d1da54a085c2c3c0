"""EXPLAIN: what was used or declined, for which slices, why, by which rule; with ANALYZE, what was
really read."""

from collections import Counter
from dataclasses import dataclass
from typing import Any

from hudi_index_service.optimizer.plan import Access, QueryPlan
from hudi_index_service.read.statistics import ReadStatistics

_WORDS = {
    Access.INDEX: "by index",
    Access.SCAN: "scanned",
    Access.MERGE: "merged with log files",
    Access.SKIP: "skipped",
}
_SLICES_SHOWN = 20


@dataclass(frozen=True, slots=True)
class Explanation:
    """How a query is read. `str()` is for people, `to_dict()` for programs.

    Attributes:
        where: The predicate as written.
        reader: ``slices`` where the service reads, ``spark`` where Spark's reader does.
        reason: Why Spark's reader; "" otherwise.
        plan: The plan; None where Spark's reader serves.
        actual: What was read; None without ANALYZE.
        seconds: Duration of the run; None without ANALYZE.
    """

    where: str | None
    reader: str
    reason: str
    plan: QueryPlan | None
    actual: ReadStatistics | None
    seconds: float | None = None

    @property
    def uses_index(self) -> bool:
        """Whether any slice is read through an index, or is not read on an index's word."""
        return self.plan is not None and any(
            each.access is Access.INDEX or each.rule == "excluded_by_statistics"
            for each in self.plan.slices
        )

    def to_dict(self) -> dict[str, Any]:
        """The explanation as plain data; keys are only ever added."""
        result: dict[str, Any] = {
            "where": self.where,
            "reader": self.reader,
            "reason": self.reason,
            "uses_index": self.uses_index,
        }
        if self.plan is not None:
            result["instant"] = self.plan.snapshot.instant
            result["base_files_only"] = self.plan.snapshot.base_files_only
            result["slices"] = [
                {
                    "name": each.file_slice.name,
                    "access": each.access.value,
                    "index_types": [serving.index_type.name for serving in each.entries],
                    "reason": each.reason,
                    "rule": each.rule,
                }
                for each in self.plan.slices
            ]
        if self.actual is not None and self.seconds is not None:
            result["actual"] = {
                "seconds": round(self.seconds, 6),
                "pages": self.actual.pages,
                "bytes": self.actual.bytes_read,
                "index_requests": self.actual.index_requests,
                "index_bytes": self.actual.index_bytes,
                "rows_checked": self.actual.rows_checked,
                "rows_returned": self.actual.rows_returned,
                "slices": {a.value: self.actual.count(a) for a in Access},
                "notes": [
                    {"name": each.slice_name, "note": each.note}
                    for each in self.actual.slices
                    if each.note
                ],
            }
        return result

    def __str__(self) -> str:
        lines = [f"where    {self.where or '(every row)'}"]
        if self.plan is None:
            return "\n".join([*lines, f"reader   Spark: {self.reason}"])
        only = ", base files alone" if self.plan.snapshot.base_files_only else ""
        lines.append(f"instant  {self.plan.snapshot.instant or '(none)'}{only}")
        counts = ", ".join(
            f"{number} {word}"
            for access, word in _WORDS.items()
            if (number := self.plan.count(access)) or access is not Access.SKIP
        )
        lines.append(f"slices   {len(self.plan.slices)}: {counts}")
        reasons = Counter((each.access, each.reason, each.rule) for each in self.plan.slices)
        for (access, reason, rule), number in reasons.most_common(_SLICES_SHOWN):
            lines.append(f"  {number:>5} {_WORDS[access]}: {reason} [{rule}]")
        if self.actual is not None and self.seconds is not None:
            lines.append(
                f"actual   {self.actual.rows_returned} rows returned of "
                f"{self.actual.rows_checked} read, {self.actual.pages} pages, "
                f"{self.actual.bytes_read:,} bytes, {self.seconds * 1000:.1f} ms"
            )
            if self.actual.index_requests:
                lines.append(
                    f"cold     {self.actual.index_bytes:,} bytes of indexes fetched by "
                    f"{self.actual.index_requests} requests"
                )
            notes = Counter(each.note for each in self.actual.slices if each.note)
            lines += [f"  {number:>5} {note}" for note, number in notes.most_common(_SLICES_SHOWN)]
        return "\n".join(lines)


def explanation(
    plan: QueryPlan,
    where: str | None,
    actual: ReadStatistics | None = None,
    seconds: float | None = None,
) -> Explanation:
    """The explanation of a plan that the service runs itself."""
    return Explanation(where, "slices", "", plan, actual, seconds)
