"""EXPLAIN: which indexes are used or declined, for which slices, why and by which rule; with
ANALYZE, also what was read."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from hudi_index_service.optimizer.history.shape import query_shape
from hudi_index_service.optimizer.plan import Access, QueryPlan, SlicePlan
from hudi_index_service.optimizer.rules.skipping import EXCLUDED
from hudi_index_service.read.explained import (
    ExplainedCost,
    ExplainedFiles,
    ExplainedGroup,
    ExplainedGroupRun,
    ExplainedNote,
    ExplainedQuery,
    ExplainedReading,
    ExplainedRows,
    ExplainedRun,
    ExplainedSlice,
)
from hudi_index_service.read.recording import uses_index
from hudi_index_service.read.statistics import ReadStatistics, SliceStatistics
from hudi_index_service.row_formats import html_lines
from hudi_index_service.wording import counted

_WORDS = {
    Access.INDEX: "by index",
    Access.SCAN: "scanned",
    Access.MERGE: "merged with log files",
    Access.LOGS: "log rows only",
    Access.SKIP: "skipped",
}
_SLICES_SHOWN = 20


@dataclass(frozen=True, slots=True)
class Explanation:
    """How a query is read. `str()` is for people, `to_dict()` and `to_json()` for programs.

    Attributes:
        where: The predicate as written.
        reader: ``slices`` if the service reads, ``spark`` if Spark's reader does.
        reason: Why Spark's reader is used; "" otherwise.
        plan: The plan; None for Spark's reader.
        actual: The statistics of the run; None without ANALYZE.
        seconds: The duration of the run; None without ANALYZE.
    """

    where: str | None
    reader: str
    reason: str
    plan: QueryPlan | None
    actual: ReadStatistics | None
    seconds: float | None = None

    def __repr__(self) -> str:
        plan = self.reader if self.plan is None else repr(self.plan)
        return f"<Explanation of {self.where or 'every row'}: {plan}>"

    def _repr_html_(self) -> str:
        """The text for people, for a notebook."""
        return html_lines(str(self))

    @property
    def uses_index(self) -> bool:
        """Whether any slice is read through an index, or skipped by an index or its statistics."""
        return self.plan is not None and uses_index(self.plan)

    def document(self) -> ExplainedQuery:
        """The explanation as typed data."""
        plan = self.plan
        if plan is None:
            return ExplainedQuery(
                where=self.where, reader="spark", reason=self.reason, uses_index=self.uses_index
            )
        covered = [_covered(each) for each in plan.slices]
        files = ExplainedFiles(
            covered=covered.count(True),
            uncovered=covered.count(False),
            unknown=covered.count(None),
        )
        by_name = (
            {} if self.actual is None else {each.slice_name: each for each in self.actual.slices}
        )
        return ExplainedQuery(
            where=self.where,
            reader="slices",
            reason=self.reason,
            uses_index=self.uses_index,
            instant=plan.snapshot.instant,
            base_files_only=plan.snapshot.base_files_only,
            shape=plan.shape or query_shape(plan.predicate),
            files=files,
            expected=_expected(plan.slices),
            groups=_groups(plan.slices, by_name),
            slices=tuple(_slice(each, by_name.get(each.file_slice.name)) for each in plan.slices),
            actual=self._run(),
        )

    def to_dict(self) -> dict[str, Any]:
        """The explanation as plain data; see docs/explain.md. Unknown fields are absent."""
        return self.document().model_dump(mode="json", exclude_none=True)

    def to_json(self) -> str:
        """The same as JSON."""
        return self.document().model_dump_json(exclude_none=True)

    def _run(self) -> ExplainedRun | None:
        statistics = self.actual
        if statistics is None or self.seconds is None:
            return None
        return ExplainedRun(
            seconds=round(self.seconds, 6),
            rows_returned=statistics.rows_returned,
            rows_checked=statistics.rows_checked,
            pages=statistics.pages,
            kept_pages=statistics.kept_pages,
            bytes=statistics.bytes_read,
            index_requests=statistics.index_requests,
            index_bytes=statistics.index_bytes,
            slices={access.value: statistics.count(access) for access in Access},
            stored=sum(each.stored for each in statistics.slices),
            notes=tuple(
                ExplainedNote(name=each.slice_name, note=each.note)
                for each in statistics.slices
                if each.note
            ),
        )

    def __str__(self) -> str:
        lines = [f"where    {self.where or '(every row)'}"]
        if self.plan is None:
            return "\n".join([*lines, f"reader   Spark: {self.reason}"])
        only = ", base files alone" if self.plan.snapshot.base_files_only else ""
        lines.append(f"instant  {self.plan.snapshot.instant or '(none)'}{only}")
        document = self.document()
        counts = ", ".join(
            f"{number} {word}"
            for access, word in _WORDS.items()
            if (number := self.plan.count(access)) or access not in (Access.SKIP, Access.LOGS)
        )
        lines.append(f"slices   {len(self.plan.slices)}: {counts}")
        for group in (document.groups or ())[:_SLICES_SHOWN]:
            lines += _group_lines(group)
        if document.files is not None and document.files.covered < len(self.plan.slices):
            lines.append(
                f"entries  for {counted(document.files.covered, 'slice')}, "
                f"none for {document.files.uncovered}"
                + (
                    f"; {document.files.unknown} were not looked at"
                    if document.files.unknown
                    else ""
                )
            )
        if document.expected is not None:
            lines.append(_expected_line(document.expected, len(self.plan.slices)))
        if document.actual is not None:
            lines += _run_lines(document.actual)
        return "\n".join(lines)


def explanation(
    plan: QueryPlan,
    where: str | None,
    actual: ReadStatistics | None = None,
    seconds: float | None = None,
) -> Explanation:
    """The explanation of a plan that the service runs itself."""
    return Explanation(where, "slices", "", plan, actual, seconds)


def _covered(plan: SlicePlan) -> bool | None:
    if plan.entries or plan.rejected_entries or plan.rule == EXCLUDED:
        return True
    uncovered = plan.access in (Access.SCAN, Access.MERGE) and plan.rule == "coverage"
    return False if uncovered else None


def _groups(
    plans: Sequence[SlicePlan], by_name: Mapping[str, SliceStatistics]
) -> tuple[ExplainedGroup, ...]:
    alike: dict[tuple[Access, str, str], list[SlicePlan]] = {}
    for each in plans:
        alike.setdefault((each.access, each.reason, each.rule), []).append(each)
    return tuple(
        ExplainedGroup(
            slices=len(members),
            access=access.value,
            reason=reason,
            rule=rule,
            expected=None if access is Access.SKIP else _expected(members),
            actual=None if access is Access.SKIP else _group_run(members, by_name),
        )
        for (access, reason, rule), members in sorted(alike.items(), key=lambda item: -len(item[1]))
    )


def _group_run(
    plans: Sequence[SlicePlan], by_name: Mapping[str, SliceStatistics]
) -> ExplainedGroupRun | None:
    read = [by_name[name] for each in plans if (name := each.file_slice.name) in by_name]
    if not read:
        return None
    return ExplainedGroupRun(
        slices=dict(Counter(each.access.value for each in read)),
        rows=sum(each.rows_returned for each in read),
        rows_checked=sum(each.rows_checked for each in read),
        pages=sum(each.pages for each in read),
        bytes=sum(each.bytes_read for each in read),
        ms=round(sum(each.ms for each in read), 3),
    )


def _group_lines(group: ExplainedGroup) -> list[str]:
    """A group's slices and, with ANALYZE, what was expected of them beside what they took."""
    lines = [f"  {group.slices:>5} {_WORDS[Access(group.access)]}: {group.reason} [{group.rule}]"]
    run, cost = group.actual, group.expected
    if run is not None and cost is not None:
        ways = ", ".join(f"{number} {_WORDS[Access(each)]}" for each, number in run.slices.items())
        lines.append(
            f"        expected {cost.rows.expected:,.0f} rows, {cost.pages:,.0f} pages, "
            f"{cost.ms:,.1f} ms (by scan {cost.scan_ms:,.1f}); actual {run.rows:,} rows, "
            f"{run.pages:,} pages, {run.ms:,.1f} ms: {ways}"
        )
    return lines


def _run_lines(run: ExplainedRun) -> list[str]:
    kept = f" ({run.kept_pages:,} kept in memory)" if run.kept_pages else ""
    lines = [
        f"actual   {counted(run.rows_returned, 'row')} returned of {run.rows_checked:,} read, "
        f"{counted(run.pages, 'page')}{kept}, {run.bytes:,} bytes, {run.seconds * 1000:.1f} ms"
    ]
    if run.index_requests:
        requests = counted(run.index_requests, "request")
        lines.append(f"cold     {run.index_bytes:,} bytes of indexes fetched by {requests}")
    if run.stored:
        files = counted(run.stored, "base file")
        lines.append(f"stored   the values of {files} in the index: none of them was read")
    notes = Counter(each.note for each in run.notes)
    lines += [f"  {number:>5} {note}" for note, number in notes.most_common(_SLICES_SHOWN)]
    return lines


def _expected(plans: Sequence[SlicePlan]) -> ExplainedCost | None:
    """The sum over the slices with an estimate; None if none of these is read."""
    estimated = [each for each in plans if _expects(each) or each.access is Access.SKIP]
    costs = [_cost(each) for each in estimated if each.access is not Access.SKIP]
    if not costs:
        return None
    rows = [each.rows for each in costs]
    return ExplainedCost(
        slices=len(estimated),
        rows=ExplainedRows(
            least=sum(each.least for each in rows),
            expected=round(sum(each.expected for each in rows), 3),
            most=sum(each.most for each in rows),
        ),
        pages=round(sum(each.pages for each in costs), 3),
        bytes=sum(each.bytes for each in costs),
        index_bytes=sum(each.index_bytes for each in costs),
        index_ms=round(sum(each.index_ms for each in costs), 3),
        scan_bytes=sum(each.scan_bytes for each in costs),
        scan_ms=round(sum(each.scan_ms for each in costs), 3),
        ms=round(sum(each.ms for each in costs), 3),
        by_history=any(each.by_history for each in costs),
    )


def _expects(plan: SlicePlan) -> bool:
    """Whether a slice's rows have known bounds. Those in log files are counted when they are
    read."""
    return plan.expected is not None and not plan.file_slice.log_files


def _cost(plan: SlicePlan) -> ExplainedCost:
    expected = plan.expected
    assert expected is not None
    return ExplainedCost(
        rows=ExplainedRows(
            least=expected.rows.least,
            expected=round(expected.rows.expected, 3),
            most=expected.rows.most,
        ),
        pages=round(expected.pages, 3),
        bytes=round(expected.bytes),
        index_bytes=expected.index_bytes,
        index_ms=round(expected.index_ms, 3),
        scan_bytes=expected.scan_bytes,
        scan_ms=round(expected.scan_ms, 3),
        ms=round(expected.index_ms if plan.access is Access.INDEX else expected.scan_ms, 3),
        by_history=expected.guessed is not None,
    )


def _slice(plan: SlicePlan, statistics: SliceStatistics | None) -> ExplainedSlice:
    skipped = plan.access is Access.SKIP
    return ExplainedSlice(
        name=plan.file_slice.name,
        access=plan.access.value,
        index_types=tuple(serving.index_type.name for serving in plan.entries),
        reason=plan.reason,
        rule=plan.rule,
        covered=_covered(plan),
        expected=None if skipped or not _expects(plan) else _cost(plan),
        actual=None if statistics is None or skipped else _reading(statistics),
    )


def _reading(statistics: SliceStatistics) -> ExplainedReading:
    return ExplainedReading(
        access=statistics.access.value,
        candidates=statistics.candidates,
        rows=statistics.rows_returned,
        rows_checked=statistics.rows_checked,
        pages=statistics.pages,
        kept_pages=statistics.kept_pages,
        bytes=statistics.bytes_read,
        index_requests=statistics.index_requests,
        index_bytes=statistics.index_bytes,
        lookup_ms=round(statistics.lookup_ms, 3),
        ms=round(statistics.ms, 3),
        log_rows=statistics.log_rows,
        stored=statistics.stored,
        note=statistics.note,
    )


def _expected_line(cost: ExplainedCost, slices: int) -> str:
    rows = cost.rows
    some = f" of {cost.slices} of {slices} slices" if cost.slices != slices else ""
    history = " [corrected by history]" if cost.by_history else ""
    if rows.least == rows.most:
        number = counted(rows.least, "row")
    else:
        number = f"about {rows.expected:,.0f} rows (from {rows.least:,} to {rows.most:,})"
    return (
        f"expected {number}{some}, "
        f"{counted(round(cost.pages), 'page')}, {cost.bytes:,} bytes, {cost.ms:,.1f} ms; by index "
        f"{cost.index_ms:,.1f} ms, by scan {cost.scan_ms:,.1f} ms{history}"
    )
