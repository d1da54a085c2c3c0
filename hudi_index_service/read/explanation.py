"""EXPLAIN: which indexes are used or declined, for which slices, why and by which rule; with
ANALYZE, also what was read. It is one record: text, JSON and SQL's rows are made of it.

docs/explain.md describes each field. Within one version, fields are only added.
"""

from collections import Counter
from collections.abc import Sequence
from typing import Annotated, Any, Literal, Self, TypeVar

from pydantic import AfterValidator, BaseModel, ConfigDict, PrivateAttr

from hudi_index_service.optimizer.history.shape import query_shape
from hudi_index_service.optimizer.plan import NOT_COVERED, Access, QueryPlan, SlicePlan
from hudi_index_service.optimizer.rules import EXCLUDED
from hudi_index_service.read.recording import uses_index
from hudi_index_service.read.statistics import ReadStatistics, SliceStatistics
from hudi_index_service.row_formats import html_lines
from hudi_index_service.wording import counted

EXPLANATION_VERSION = 1
"""The version of the schema. A program for an older version can read the fields that it knows."""

_WORDS = {
    "index": "by index",
    "scan": "scanned",
    "merge": "merged with log files",
    "logs": "log rows only",
    "skip": "skipped",
}
_SHOWN = 20  # groups, and notes
_Rounded = Annotated[float, AfterValidator(lambda value: round(value, 3))]


class _Part(BaseModel):
    model_config = ConfigDict(frozen=True)


_Whole = TypeVar("_Whole", bound=_Part)


class ExplainedRows(_Part):
    """The number of matching rows: never fewer than `least`, never more than `most`."""

    least: int
    expected: _Rounded
    most: int


class ExplainedCost(_Part):
    """The expected cost of reading one slice, or the `slices` of a group that have an estimate."""

    slices: int | None = None
    rows: ExplainedRows
    pages: _Rounded
    bytes: int
    index_bytes: int
    index_ms: _Rounded
    scan_bytes: int
    scan_ms: _Rounded
    ms: _Rounded
    by_history: bool


class ExplainedReading(_Part):
    """What reading one slice took."""

    access: str
    candidates: int | None = None
    rows: int
    rows_checked: int
    pages: int
    kept_pages: int
    bytes: int
    index_requests: int
    index_bytes: int
    lookup_ms: _Rounded
    ms: _Rounded
    log_rows: int | None = None
    stored: bool
    note: str


class ExplainedSlice(_Part):
    """One file slice."""

    name: str
    access: str
    index_types: tuple[str, ...]
    reason: str
    rule: str
    covered: bool | None = None
    expected: ExplainedCost | None = None
    actual: ExplainedReading | None = None


class ExplainedGroupRun(_Part):
    """What reading a group of slices took: their number by access, and sums."""

    slices: dict[str, int]
    rows: int
    rows_checked: int
    pages: int
    bytes: int
    ms: _Rounded


class ExplainedGroup(_Part):
    """The slices that are read in one way, for one reason. Each slice is in one group."""

    slices: int
    access: str
    reason: str
    rule: str
    expected: ExplainedCost | None = None
    actual: ExplainedGroupRun | None = None


class ExplainedNote(_Part):
    """The reason why a slice was not read as planned."""

    name: str
    note: str


class ExplainedRun(_Part):
    """What the whole query took."""

    seconds: float
    rows_returned: int
    rows_checked: int
    pages: int
    kept_pages: int
    bytes: int
    index_requests: int
    index_bytes: int
    slices: dict[str, int]
    stored: int
    notes: tuple[ExplainedNote, ...]


class ExplainedFiles(_Part):
    """How many slices entries can serve, cannot serve, and how many were not looked at. Of a fast
    query, how many of those that cannot be served are left out."""

    covered: int
    uncovered: int
    unknown: int
    left_out: int | None = None


class Explanation(_Part):
    """How a query is read, and why. `str()` is for people, `to_dict()` and `to_json()` for
    programs.

    Attributes:
        where: The predicate as written; None for every row.
        reader: ``slices`` if the service reads, ``spark`` if Spark's reader does. Only `where`,
            `reason` and `uses_index` are known then.
        reason: Why Spark's reader is used; "" otherwise.
        uses_index: Whether any slice is read through an index, or skipped by an index or its
            statistics.
        groups: The slices by the way in which they are read, the largest group first.
        actual: What reading took; None without ANALYZE.
    """

    version: int = EXPLANATION_VERSION
    where: str | None = None
    reader: Literal["slices", "spark"]
    reason: str
    uses_index: bool
    instant: str | None = None
    base_files_only: bool | None = None
    shape: str | None = None
    files: ExplainedFiles | None = None
    expected: ExplainedCost | None = None
    groups: tuple[ExplainedGroup, ...] | None = None
    slices: tuple[ExplainedSlice, ...] | None = None
    actual: ExplainedRun | None = None
    _plan: QueryPlan | None = PrivateAttr(default=None)

    @classmethod
    def by_spark(cls, where: str | None, reason: str) -> Self:
        """The explanation of a query that Spark's reader answers."""
        return cls(where=where, reader="spark", reason=reason, uses_index=False)

    @classmethod
    def of(
        cls,
        plan: QueryPlan,
        where: str | None,
        read: ReadStatistics | None = None,
        seconds: float | None = None,
    ) -> Self:
        """The explanation of a plan that the service runs itself.

        Args:
            read, seconds: What was read, and how long that took; None if the query was not run.
        """
        begun = {} if read is None else read.begun
        slices = tuple(_slice(each, begun.get(number)) for number, each in enumerate(plan.slices))
        covered = Counter(each.covered for each in slices)
        explained = cls(
            where=where,
            reader="slices",
            reason="",
            uses_index=uses_index(plan),
            instant=plan.snapshot.instant,
            base_files_only=plan.snapshot.base_files_only,
            shape=plan.shape or query_shape(plan.predicate),
            files=ExplainedFiles(
                covered=covered[True],
                uncovered=covered[False],
                unknown=covered[None],
                left_out=plan.left_out,
            ),
            expected=_expected(slices),
            groups=_groups(slices),
            slices=slices,
            actual=None if seconds is None else _run(slices, seconds),
        )
        explained._plan = plan
        return explained

    def slices_by_access(self) -> Counter[str]:
        """The number of slices by the access that is planned for them."""
        return Counter(each.access for each in self.slices or ())

    @property
    def plan(self) -> QueryPlan | None:
        """The plan; None for Spark's reader."""
        return self._plan

    def to_dict(self) -> dict[str, Any]:
        """The explanation as plain data; see docs/explain.md. Unknown fields are absent."""
        return self.model_dump(mode="json", exclude_none=True)

    def to_json(self) -> str:
        """The same as JSON."""
        return self.model_dump_json(exclude_none=True)

    def __repr__(self) -> str:
        plan = self.reader if self.plan is None else repr(self.plan)
        return f"<Explanation of {self.where or 'every row'}: {plan}>"

    def _repr_html_(self) -> str:
        """The text for people, for a notebook."""
        return html_lines(str(self))

    def __str__(self) -> str:
        lines = [f"where    {self.where or '(every row)'}"]
        if self.files is None:
            return "\n".join([*lines, f"reader   Spark: {self.reason}"])
        only = ", base files alone" if self.base_files_only else ""
        lines.append(f"instant  {self.instant or '(none)'}{only}")
        groups, counts = self.groups or (), self.slices_by_access()
        number = counts.total()
        ways = (
            f"{counts[access]} {word}"
            for access, word in _WORDS.items()
            if counts[access] or access not in ("logs", "skip")
        )
        lines.append(f"slices   {number}: {', '.join(ways)}")
        for group in groups[:_SHOWN]:
            lines += _group_lines(group)
        if others := groups[_SHOWN:]:
            slices = counted(sum(each.slices for each in others), "slice")
            lines.append(f"        and {counted(len(others), 'more group')} of {slices}")
        files = self.files
        if files.covered < number:
            unknown = f"; {files.unknown} were not looked at" if files.unknown else ""
            covered = counted(files.covered, "slice")
            lines.append(f"entries  for {covered}, none for {files.uncovered}{unknown}")
        if files.left_out is not None:
            lines.append(f"fast     {counted(files.left_out, 'slice')} left out of the answer")
        if self.expected is not None:
            lines.append(_expected_line(self.expected, number))
        if self.actual is not None:
            lines += _run_lines(self.actual)
        return "\n".join(lines)


def _slice(plan: SlicePlan, read: SliceStatistics | None) -> ExplainedSlice:
    return ExplainedSlice(
        name=plan.file_slice.name,
        access=plan.access.value,
        index_types=tuple(serving.index_type.name for serving in plan.entries),
        reason=plan.reason,
        rule=plan.rule,
        covered=_covered(plan),
        expected=_cost(plan),
        actual=None if read is None or plan.access is Access.SKIP else _reading(read),
    )


def _covered(plan: SlicePlan) -> bool | None:
    if plan.rule == NOT_COVERED:
        return False
    if plan.known_entries or plan.rule == EXCLUDED:
        return True
    uncovered = plan.access in (Access.SCAN, Access.MERGE) and plan.rule == "coverage"
    return False if uncovered else None


def _cost(plan: SlicePlan) -> ExplainedCost | None:
    """Of a slice that is read and whose rows have known bounds. Those in log files are counted when
    they are read."""
    expected = plan.expected
    if expected is None or plan.file_slice.log_files or plan.access is Access.SKIP:
        return None
    fields = expected._asdict() | {
        "rows": ExplainedRows(**expected.rows._asdict()),
        "bytes": round(expected.bytes),
        "ms": expected.index_ms if plan.access is Access.INDEX else expected.scan_ms,
        "by_history": expected.guessed is not None,
    }
    return ExplainedCost(**fields)


def _reading(read: SliceStatistics) -> ExplainedReading:
    renamed = {
        "access": read.access.value,
        "rows": read.rows_returned,
        "bytes": read.bytes_read,
    }
    others = ExplainedReading.model_fields.keys() - renamed.keys()
    return ExplainedReading(**renamed, **{name: getattr(read, name) for name in others})


def _expected(slices: Sequence[ExplainedSlice]) -> ExplainedCost | None:
    """The sum over the slices with an estimate; None if none of these is read."""
    costs = [each.expected for each in slices if each.expected is not None]
    if not costs:
        return None
    return _summed(
        ExplainedCost,
        costs,
        slices=len(costs) + sum(each.access == "skip" for each in slices),
        rows=_summed(ExplainedRows, [each.rows for each in costs]),
        by_history=any(each.by_history for each in costs),
    )


def _groups(slices: Sequence[ExplainedSlice]) -> tuple[ExplainedGroup, ...]:
    alike: dict[tuple[str, str, str], list[ExplainedSlice]] = {}
    for each in slices:
        alike.setdefault((each.access, each.reason, each.rule), []).append(each)
    return tuple(
        ExplainedGroup(
            slices=len(members),
            access=access,
            reason=reason,
            rule=rule,
            expected=_expected(members),
            actual=_group_run([each.actual for each in members if each.actual is not None]),
        )
        for (access, reason, rule), members in sorted(alike.items(), key=lambda item: -len(item[1]))
    )


def _group_run(read: Sequence[ExplainedReading]) -> ExplainedGroupRun | None:
    if not read:
        return None
    return _summed(ExplainedGroupRun, read, slices=Counter(each.access for each in read))


def _run(slices: Sequence[ExplainedSlice], seconds: float) -> ExplainedRun:
    read = [each.actual for each in slices if each.actual is not None]
    accesses = Counter(
        each.access if each.actual is None else each.actual.access for each in slices
    )
    notes = ((each.name, each.actual.note) for each in slices if each.actual is not None)
    return _summed(
        ExplainedRun,
        read,
        seconds=round(seconds, 6),
        rows_returned=sum(each.rows for each in read),
        slices={each.value: accesses[each.value] for each in Access},
        notes=tuple(ExplainedNote(name=name, note=note) for name, note in notes if note),
    )


def _summed(kind: type[_Whole], parts: Sequence[_Part], **known: Any) -> _Whole:
    """A record with the sums of its parts in all fields but the known ones."""
    names = kind.model_fields.keys() - known.keys()
    return kind(**known, **{name: sum(getattr(each, name) for each in parts) for name in names})


def _group_lines(group: ExplainedGroup) -> list[str]:
    """A group's slices and, with ANALYZE, what was expected of them beside what they took."""
    lines = [f"  {group.slices:>5} {_WORDS[group.access]}: {group.reason} [{group.rule}]"]
    run, cost = group.actual, group.expected
    if run is not None and cost is not None:
        ways = ", ".join(f"{number} {_WORDS[each]}" for each, number in run.slices.items())
        lines.append(
            f"        expected {cost.rows.expected:,.0f} rows, {cost.pages:,.0f} pages, "
            f"{cost.ms:,.1f} ms (by scan {cost.scan_ms:,.1f}); actual {run.rows:,} rows, "
            f"{run.pages:,} pages, {run.ms:,.1f} ms: {ways}"
        )
    return lines


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
    notes = Counter(each.note for each in run.notes).most_common()
    lines += [f"  {number:>5} {note}" for note, number in notes[:_SHOWN]]
    if others := notes[_SHOWN:]:
        lines.append(f"        and {counted(len(others), 'more note')}")
    return lines
