"""Optimized plans of Spark's, brought over from the JVM as one text."""

from collections.abc import Hashable, Iterator
from dataclasses import dataclass, field
from typing import Any

from hudi_index_service.sql.catalyst.expression import Described
from hudi_index_service.sql.catalyst.plan_reader import plan_reader, told
from hudi_index_service.sql.catalyst.relation import HudiRelation, read_relation
from hudi_index_service.sql.catalyst.unordered import left_to_spark


@dataclass(frozen=True, slots=True)
class Sources:
    """What an analyzed plan, with its sub-queries, reads.

    Attributes:
        calls_python: Whether it calls Python functions.
        tables: The base paths of Hudi tables.
    """

    calls_python: bool
    tables: tuple[str, ...]


def sources(analyzed: Any) -> Sources:
    """Of a plan in the JVM."""
    found = told(plan_reader(analyzed).sources(analyzed))
    return Sources(found["calls_python"], tuple(found["tables"]))


@dataclass(slots=True, eq=False)
class PlanNode:
    """A node of a plan.

    Attributes:
        kind: The full name of its class.
        has_subquery: Whether there is a sub-query in it or below it.
        has_join: Whether there is a join in it, below it, or in a sub-query there.
        table: The base path of the Hudi table that it reads; None if it reads none.
        functions: Of an Aggregate the classes of the functions that it calls; else None.
        indeterminate: Its expressions that are not deterministic, as SQL.
        children: In their order.
    """

    kind: str
    has_subquery: bool
    has_join: bool
    table: str | None
    functions: list[str] | None
    indeterminate: list[str]
    _plan: Any
    _place: int
    children: "list[PlanNode]" = field(default_factory=list)
    _java: Any = None
    _asked: "dict[tuple[int, ...], ScanRequest]" = field(default_factory=dict)

    @property
    def java(self) -> Any:
        """The node in the JVM, which is asked for it once."""
        if self._java is None:
            self._java = plan_reader(self._plan).node(self._plan, self._place)
        return self._java

    def asked(self, condition: "PlanNode | None", above: "PlanNode | None") -> "ScanRequest":
        """What the plan asks of a leaf that reads a Hudi table. The JVM is asked for it once.

        Args:
            condition: The Filter right above it; None if there is none.
            above: The node above these that tells which columns are needed; None if all are.
        """
        places = tuple(-1 if each is None else each._place for each in (condition, above))
        if places not in self._asked:
            self._asked[places] = self._read_asked(condition, places)
        return self._asked[places]

    def _read_asked(self, condition: "PlanNode | None", places: tuple[int, ...]) -> "ScanRequest":
        found = told(plan_reader(self._plan).asked(self._plan, self._place, *places))
        described = None
        if condition is not None:
            described = Described.of(found["condition"], lambda: condition.java.condition())
        return ScanRequest(
            relation=read_relation(found["relation"], lambda: self.java),
            number=found["relation"]["ids"][0],
            filter=found.get("filter"),
            condition=described,
            ids=frozenset(found["ids"]) if "ids" in found else None,
        )

    @property
    def needs_spark(self) -> str | None:
        """Why only Spark's own reader may stand below it; None if that does not matter."""
        return left_to_spark(self.indeterminate)

    def tables(self) -> list[str]:
        """The base paths of the Hudi tables that it reads with all below it, and with the
        sub-queries there."""
        if not self.children and not self.has_subquery:
            return [] if self.table is None else [self.table]
        return list(told(plan_reader(self._plan).tablesIn(self.java)))


@dataclass(frozen=True, slots=True)
class ScanRequest:
    """What a plan asks of a leaf that reads a Hudi table.

    Attributes:
        relation: What it reads; or why it is left to Spark.
        number: Tells the leaf from others: the id of its first attribute.
        filter: Equal for equal conditions; None without one.
        condition: The condition on its rows.
        ids: Of the attributes that are needed; None if all are.
    """

    relation: HudiRelation | str
    number: int
    filter: str | None
    condition: Described | None
    ids: frozenset[int] | None

    @property
    def key(self) -> tuple[Hashable, ...]:
        """Equal where the same is asked of the same leaf."""
        # One leaf may stand twice in a plan, of whose structs each place needs other fields.
        types = () if isinstance(self.relation, str) else self.relation.columns.types
        return (self.number, self.filter, self.ids, *types)


def read_plan(plan: Any) -> PlanNode:
    """A plan in the JVM, from its topmost node."""
    described = enumerate(told(plan_reader(plan).nodes(plan)))
    return _with_children(described, plan)


def _with_children(described: Iterator[tuple[int, dict[str, Any]]], plan: Any) -> PlanNode:
    place, fields = next(described)
    number = fields.pop("children")
    node = PlanNode(**fields, _plan=plan, _place=place)
    node.children.extend(_with_children(described, plan) for _ in range(number))
    return node
