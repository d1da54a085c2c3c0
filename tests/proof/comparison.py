"""The comparison: families of tables, predicates on them, three answers to each, and the counts."""

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import Future, ProcessPoolExecutor
from dataclasses import dataclass, field
from functools import reduce
from pathlib import Path
from typing import TypeVar

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from hudi_index_service.columns import root_column
from tests.hudi_tables import read_rows, timeline_folder
from tests.proof.answers import OurAnswer, Rows, SparksAnswers, View, our_answers
from tests.proof.drawn import drawn
from tests.proof.families import ID, Family, Place, families
from tests.proof.full_text import searches
from tests.proof.layouts import SHAPES, Layout, layouts, make_table
from tests.proof.predicates import Condition, cells, counted, predicates

T = TypeVar("T")

ZONES = ("UTC", "Europe/Berlin", "+08:00")
AT_ONCE = 400  # predicates in one Spark job
OURS_AT_ONCE = 100  # … in one task of a worker
SEARCHES = 80  # in each table whose messages can be searched
MOST_SHRUNK = 8  # disagreements of a family; many often have the same cause
# One in this many predicates is put to a table of the shape: merging log files takes longest.
STRIDES = {shape: 2 if shape == "with logs" else 1 for shape in SHAPES}


# Earlier instants and base files alone are queried less often.
OTHER_VIEWS = {"with logs": 8, "some columns": 8}


@dataclass(frozen=True)
class Member:
    """A table of a family, or another view of it, with its recipe.

    Attributes:
        stride: One in this many predicates is put to it.
    """

    family: Family
    view: View
    layout: Layout
    stride: int

    @property
    def name(self) -> str:
        """The view's name in the counts."""
        if self.view.as_of is not None:
            return "as of an earlier instant"
        return "latest" if self.view.query_type == "snapshot" else self.view.query_type

    def sample(self, items: Sequence[T]) -> list[T]:
        """Every `stride`-th of the items, of which there is one for each predicate."""
        return list(items[:: self.stride])


@dataclass
class Counts:
    """What was compared.

    Attributes:
        compared: Predicates on a table to which index, scan and Spark gave the same rows.
        with_rows: … and there were rows.
        slices: Slices in all these queries.
        indexed: … that were read by row ids.
        merged: … that were merged with log files.
        refused: Why the service did not answer predicates.
        methods: How often each other method agreed.
        views: Comparisons on the latest rows, on those of an earlier instant, on base files alone.
        cells: How often each operator was compared on each type.
        searches: How often index, scan and a few lines of Python agreed on a full-text function.
        searches_with_rows: … and there were rows.
        tables: How many tables there were.
    """

    compared: int = 0
    with_rows: int = 0
    slices: int = 0
    indexed: int = 0
    merged: int = 0
    refused: Counter[str] = field(default_factory=Counter)
    methods: Counter[str] = field(default_factory=Counter)
    views: Counter[str] = field(default_factory=Counter)
    searches: Counter[str] = field(default_factory=Counter)
    searches_with_rows: int = 0
    tables: int = 0
    cells: Counter[tuple[str, str]] = field(default_factory=Counter)

    def add(self, condition: Condition, answer: OurAnswer, view: str) -> None:
        """Counts one comparison in which all agreed."""
        self.views[view] += 1
        self.methods[answer.method] += 1
        self.compared += 1
        self.with_rows += bool(answer.by_index)
        self.slices += answer.slices
        self.indexed += answer.indexed
        self.merged += answer.merged
        self.cells += counted(condition)

    def __str__(self) -> str:
        (operator, type_name), least = min(self.cells.items(), key=lambda item: item[1])
        return (
            f"{self.compared:,} comparisons on {self.tables} tables: index, scan and Spark agree\n"
            f"{self.with_rows:,} have rows in the answer\n"
            f"{self.refused.total():,} more are refused\n"
            f"{_listed(self.views)}\n"
            f"by other methods too: {_listed(self.methods)}\n"
            f"{self.slices:,} slices: {self.indexed:,} read by row ids, {self.merged:,} merged\n"
            f"{len(self.cells)} operators × types, each at least {least} times "
            f"({operator} on {type_name})\n"
            f"full text: {_listed(self.searches)}; {self.searches_with_rows:,} have rows"
        )


def family_of(number: int) -> Family:
    """The family of this number."""
    return drawn(families(ZONES[number % len(ZONES)]), 1, number)[0]


def members(
    spark: SparkSession, folder: Path, number: int, shapes: Iterable[str] = SHAPES
) -> Iterator[Member]:
    """The tables of one family, each as soon as it is written, and their other views.

    Args:
        number: Which family; the same one for the same number.
    """
    family = family_of(number)
    zone = family.time_zone
    for at, shape in enumerate(shapes):
        layout = drawn(layouts(shape), 1, number * 10 + at)[0]
        table_folder = folder / f"{number}-{at}"
        table_folder.mkdir()
        path = make_table(spark, family, layout, table_folder)
        views = [View(path, zone)]
        if shape in OTHER_VIEWS:
            views.append(View(path, zone, as_of=instants(path)[1]))
        if layout.has_logs:
            views.append(View(path, zone, query_type="read_optimized"))
        for view in views:
            stride = STRIDES.get(shape, 1) if view is views[0] else OTHER_VIEWS[shape]
            yield Member(family, view, layout, stride)


class FamilyProof:
    """The tables of one family, and the predicates put to them.

    Args:
        number: Which family; the same one for the same number.
        count: How many predicates, each put to the tables as `STRIDES` says.
        workers: Query the service, while Spark is queried here.
        shapes: The shapes of the tables.
    """

    def __init__(
        self,
        spark: SparkSession,
        folder: Path,
        number: int,
        count: int,
        workers: ProcessPoolExecutor,
        shapes: Iterable[str] = SHAPES,
    ) -> None:
        self.spark = spark
        self.family = family_of(number)
        self.conditions = drawn(predicates(self.family), count, number)
        self.wheres = [str(condition) for condition in self.conditions]
        self.members: list[Member] = []
        self._ours: list[list[Future[list[OurAnswer]]]] = []
        at_once = min(OURS_AT_ONCE, count // 2)
        for member in members(spark, folder, number, shapes):
            self.members.append(member)
            chunks = _chunks(member.sample(self.wheres), at_once)
            self._ours.append([workers.submit(our_answers, member.view, each) for each in chunks])
        frame = reduce(DataFrame.unionByName, map(self._rows, range(len(self.members))))
        # Each task reads all the predicates: few tasks evaluate them sooner than many.
        frame = frame.coalesce(2).localCheckpoint()
        self._sparks = SparksAnswers(frame, self.family.time_zone)
        self._texts = frame.select("table", "row", "msg").collect()
        self.searches = searches(number, min(SEARCHES, count // 4))
        wheres = [each.where for each in self.searches]
        self._search_answers = {
            at: workers.submit(our_answers, member.view, wheres)
            for at, member in enumerate(self.members)
            if member.layout.searchable and member.name == "latest"
        }

    def _rows(self, number: int) -> DataFrame:
        view = self.members[number].view
        options = {"hoodie.datasource.query.type": view.query_type}
        if view.as_of is not None:
            options["as.of.instant"] = view.as_of
        rows = read_rows(self.spark, view.path, **options)
        columns = ["row", ID.name, self.family.part.name, *self.family.schema.names]
        return rows.select(F.lit(number).alias("table"), *columns)

    def compare(self, counts: Counts) -> list[str]:
        """Compares all answers; returns a report of each disagreement."""
        theirs = [
            answer
            for chunk in _chunks(self.wheres, AT_ONCE)
            for answer in self._sparks.evaluate(chunk)
        ]
        wrong: dict[str, str] = {}
        shrunk = 0
        for number, futures in enumerate(self._ours):
            ours = [answer for future in futures for answer in future.result()]
            member = self.members[number]
            sample = member.sample(list(zip(self.conditions, theirs, strict=True)))
            for (condition, their), our in zip(sample, ours, strict=True):
                if our.refused:
                    counts.refused[our.refused] += 1
                elif _agree(our, their, number):
                    counts.add(condition, our, member.name)
                elif (shrunk := shrunk + 1) <= MOST_SHRUNK:
                    small = self._shrunk(number, condition)
                    wrong[str(small)] = self._explained(number, small)
            counts.tables += member.name == "latest"
        for number, future in self._search_answers.items():
            texts = {row["row"]: row["msg"] for row in self._texts if row["table"] == number}
            for search, our in zip(self.searches, future.result(), strict=True):
                expected = tuple(sorted(row for row, text in texts.items() if search.truth(text)))
                if our.by_index == our.by_scan == expected and not (our.refused or our.wrong):
                    counts.searches[search.function] += 1
                    counts.searches_with_rows += bool(expected)
                else:
                    wrong[search.where] = f"{search.where}: {our}, expected {_shown(expected)}"
        for cell in cells(self.family):
            counts.cells.setdefault(cell, 0)
        if shrunk:
            wrong[""] = f"{shrunk} comparisons in all disagree in this family"
        return list(wrong.values())

    def _explained(self, number: int, small: Condition) -> str:
        """The recipe, the predicate, and some of the rows on which the answers differ."""
        member = self.members[number]
        (our,) = our_answers(member.view, [str(small)])
        (their,) = self._sparks.evaluate([str(small)])
        by_spark = None if their is None else their.get(number, ())
        differing = {*our.by_index} ^ {*our.by_scan} | {*our.by_index} ^ {*(by_spark or ())}
        roots = {root_column(leaf.place) for leaf in small.leaves()}
        some = ", ".join(map(str, sorted(differing)[:3])) or "NULL"
        shown = member.view.scan(
            f"row IN ({some})", columns=["row", *sorted(roots)], use_index="never"
        )
        return "\n  ".join(
            [
                f"{small}",
                f"table: {member.layout}, {member.name}",
                f"time zone: {self.family.time_zone}",
                *(f"pool: {p.name} {p.pool}" for p in self._places(roots)),
                f"by index {_shown(our.by_index)}, {our.wrong}",
                f"by scan {_shown(our.by_scan)}",
                f"by Spark {'refused' if by_spark is None else _shown(by_spark)}",
                *(f"row: {row}" for row in shown.to_arrow().to_pylist()),
            ]
        )

    def _places(self, roots: set[str]) -> list[Place]:
        return [p for p in self.family.predicate_places if root_column(p.name) in roots]

    def _shrunk(self, number: int, condition: Condition) -> Condition:
        while True:
            smaller = list(condition.smaller())
            wheres = [str(each) for each in smaller]
            ours = our_answers(self.members[number].view, wheres)
            theirs = self._sparks.evaluate(wheres) if wheres else []
            wrong = [
                each
                for each, our, their in zip(smaller, ours, theirs, strict=True)
                if not our.refused and not _agree(our, their, number)
            ]
            if not wrong:
                return condition
            condition = min(wrong, key=lambda each: len(str(each)))


def instants(path: Path) -> list[str]:
    """The requested times of the table's completed writes."""
    done = (".commit", ".deltacommit", ".replacecommit")
    files = (each.name for each in timeline_folder(path).iterdir() if each.suffix in done)
    return sorted(name.split(".")[0].split("_")[0] for name in files)


def _agree(our: OurAnswer, their: dict[int, Rows] | None, table: int) -> bool:
    if their is None:
        return False
    return our.by_index == our.by_scan == their.get(table, ()) and not our.wrong


def _listed(counter: Counter[str]) -> str:
    return ", ".join(f"{name or 'none'} {times:,}" for name, times in sorted(counter.items()))


def _shown(rows: Rows) -> str:
    return f"{len(rows)} rows {rows[:8]}"


def _chunks(wheres: Sequence[str], size: int) -> Iterator[Sequence[str]]:
    for start in range(0, len(wheres), size):
        yield wheres[start : start + size]
