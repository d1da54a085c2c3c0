"""Spark's optimized plans, fetched from the JVM as one text."""

from collections.abc import Hashable, Iterator
from dataclasses import dataclass, field
from typing import Any

from hudi_index_service.sql.catalyst.expression import Described
from hudi_index_service.sql.catalyst.plan_reader import decoded, plan_reader
from hudi_index_service.sql.catalyst.relation import HudiRelation, read_relation
from hudi_index_service.sql.catalyst.unordered import left_to_spark


@dataclass(frozen=True, slots=True)
class Sources:
    """The sources of an analyzed plan with its sub-queries.

    Attributes:
        calls_python: Whether it calls Python functions.
        tables: The base paths of Hudi tables.
    """

    calls_python: bool
    tables: tuple[str, ...]


def sources(analyzed: Any) -> Sources:
    """The sources of a plan in the JVM."""
    fields = decoded(plan_reader(analyzed).sources(analyzed))
    return Sources(fields["calls_python"], tuple(fields["tables"]))


@dataclass(slots=True, eq=False)
class PlanNode:
    """A node of a plan.

    Attributes:
        kind: The full name of its class.
        has_subquery: Whether there is a sub-query in it or below it.
        has_join: Whether there is a join in it, below it, or in a sub-query there.
        table: The base path of the Hudi table that it reads; None if it reads none.
        functions: The classes of the functions that an Aggregate calls; None for other nodes.
        indeterminate: Its nondeterministic expressions, as SQL.
        children: In order.
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
    _requests: "dict[tuple[int, ...], ScanRequest]" = field(default_factory=dict)

    @property
    def java(self) -> Any:
        """The node in the JVM, fetched once."""
        if self._java is None:
            self._java = plan_reader(self._plan).node(self._plan, self._place)
        return self._java

    def scan_request(self, condition: "PlanNode | None", above: "PlanNode | None") -> "ScanRequest":
        """The plan's request to a leaf that reads a Hudi table, fetched from the JVM once.

        Args:
            condition: The Filter directly above it; None if there is none.
            above: The node above these that determines the needed columns; None if all are.
        """
        places = tuple(-1 if each is None else each._place for each in (condition, above))
        if places not in self._requests:
            self._requests[places] = self._read_request(condition, places)
        return self._requests[places]

    def _read_request(self, condition: "PlanNode | None", places: tuple[int, ...]) -> "ScanRequest":
        fields = decoded(plan_reader(self._plan).scanRequest(self._plan, self._place, *places))
        description = None
        if condition is not None:
            description = Described.of(fields["condition"], lambda: condition.java.condition())
        return ScanRequest(
            relation=read_relation(fields["relation"], lambda: self.java),
            number=fields["relation"]["ids"][0],
            filter=fields.get("filter"),
            condition=description,
            ids=frozenset(fields["ids"]) if "ids" in fields else None,
        )

    @property
    def needs_spark(self) -> str | None:
        """The reason why only Spark's own reader may be below it; None if any reader may."""
        return left_to_spark(self.indeterminate)

    def tables(self) -> list[str]:
        """The base paths of the Hudi tables that are read by the node, all nodes below it, and the
        sub-queries there."""
        if not self.children and not self.has_subquery:
            return [] if self.table is None else [self.table]
        return list(decoded(plan_reader(self._plan).tablesIn(self.java)))


@dataclass(frozen=True, slots=True)
class ScanRequest:
    """A plan's request to a leaf that reads a Hudi table.

    Attributes:
        relation: The relation; or the reason why it is left to Spark.
        number: Identifies the leaf: the id of its first attribute.
        filter: Equal for equal conditions; None without one.
        condition: The condition on its rows.
        ids: The ids of the needed attributes; None if all are needed.
    """

    relation: HudiRelation | str
    number: int
    filter: str | None
    condition: Described | None
    ids: frozenset[int] | None

    @property
    def key(self) -> tuple[Hashable, ...]:
        """Equal for equal requests to the same leaf."""
        # A leaf may occur twice in a plan, and each occurrence may need other fields of structs.
        types = () if isinstance(self.relation, str) else self.relation.columns.types
        return (self.number, self.filter, self.ids, *types)


def read_plan(plan: Any) -> PlanNode:
    """Reads a plan in the JVM, from its topmost node."""
    descriptions = enumerate(decoded(plan_reader(plan).nodes(plan)))
    return _with_children(descriptions, plan)


def _with_children(descriptions: Iterator[tuple[int, dict[str, Any]]], plan: Any) -> PlanNode:
    place, fields = next(descriptions)
    number = fields.pop("children")
    node = PlanNode(**fields, _plan=plan, _place=place)
    node.children.extend(_with_children(descriptions, plan) for _ in range(number))
    return node
