"""Values that a join asks of one side, as the rows of the other tell: of a plan as the optimizer
leaves it. Attributes are told apart by Catalyst's expression ids."""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from hudi_index_service.predicate.spark_sql import identifier_sql, literal_sql
from hudi_index_service.sql.select.relation import (
    Columns,
    attribute_id,
    attribute_ids,
    reads_hudi,
)
from hudi_index_service.sql.select.scala import class_name, nodes

MOST_KEYS = 1_000
"""To write down more, as literals of a where text, takes longer than most scans."""

_LOGICAL = "org.apache.spark.sql.catalyst.plans.logical."
_PLANS = "org.apache.spark.sql.catalyst.plans."
_EXPRESSIONS = "org.apache.spark.sql.catalyst.expressions."
_ATTRIBUTE, _ALIAS = f"{_EXPRESSIONS}AttributeReference", f"{_EXPRESSIONS}Alias"
_LISTS = {f"{_LOGICAL}Project": "projectList", f"{_LOGICAL}Aggregate": "aggregateExpressions"}
_JOIN = f"{_LOGICAL}Join"
# What leaves out rows, or only orders them: each row goes its way whatever the others are.
_ROW_BY_ROW = {
    f"{_LOGICAL}{name}"
    for name in (
        *("Filter", "Sort", "SubqueryAlias", "Generate"),
        *("Repartition", "RepartitionByExpression", "RebalancePartitions"),
    )
}
# What, besides, gives an attribute no value that it has not below.
_NO_NEW_VALUES = _ROW_BY_ROW | {
    f"{_LOGICAL}{name}"
    for name in ("GlobalLimit", "LocalLimit", "Offset", "Window", "WindowGroupLimit", "Distinct")
}
# A row of this side that finds no partner there has no part in the join's rows.
_LEFT_NEEDS_RIGHT = {"Inner", "Cross", "LeftSemi", "RightOuter"}
_RIGHT_NEEDS_LEFT = {"Inner", "Cross", "LeftSemi", "LeftOuter", "LeftAnti", "ExistenceJoin"}
# Without a row of this side, the join's rows are those that it has no part in.
_LEFT_ON_ITS_OWN = {"Inner", "Cross", "LeftSemi", "LeftOuter", "LeftAnti", "ExistenceJoin"}
_RIGHT_ON_ITS_OWN = {"Inner", "Cross", "RightOuter"}
_TYPES = {"string", "tinyint", "smallint", "int", "bigint", "date", "timestamp", "binary"}
_BROKEN = "\ufffd"  # what bytes that are no UTF-8 may have become


@dataclass(frozen=True, slots=True)
class Leaf:
    """A leaf of a plan, and one of its attributes.

    Attributes:
        node: The leaf.
        number: Tells it from others: the id of its first attribute.
        attribute: The id of the one that is meant.
    """

    node: Any
    number: int
    attribute: int


Values = Callable[[Leaf], pa.Array | None]
"""The values of an attribute; None if they are not known, or too many."""


@dataclass(slots=True)
class JoinKeys:
    """The keys found so far.

    Attributes:
        by_attribute: Of attributes of Hudi relations, the values that the query's joins ask for.
        changed: How many of them the relations have, by their numbers.
    """

    by_attribute: dict[int, pa.Array] = field(default_factory=dict)
    changed: Counter[int] = field(default_factory=Counter)
    _links: list[tuple[Leaf, Leaf]] = field(default_factory=list)

    def look_at(self, joins: Iterable[Any]) -> None:
        """Finds out which leaves may learn keys from which others by some joins."""
        for join in joins:
            for giving, key, taking, attribute in _restricted(join):
                target = _leaf(taking, attribute, _takes)
                source = None if target is None else _leaf(giving, key, _gives)
                if source is not None and target is not None and reads_hudi(target.node):
                    self._links.append((source, target))

    def learn(self, values: Values, wanted: Callable[[int], bool]) -> bool:
        """Tells whether keys were found that were not known.

        Args:
            wanted: Whether keys would be of use for a relation, by its number.
        """
        found = False
        for source, target in self._links:
            if target.attribute in self.by_attribute or not wanted(target.number):
                continue
            known = values(source)
            if known is not None:
                self.by_attribute[target.attribute] = known
                self.changed[target.number] += 1
                found = True
        return found

    def condition(self, columns: Columns, answered: Callable[[str], bool]) -> str | None:
        """What the keys ask of a relation with these columns, as a where text; None if there are
        none.

        Args:
            answered: Whether the service can answer a where text on the relation's table.
        """
        asked = []
        for number, name in zip(columns.ids, columns.names, strict=True):
            values = self.by_attribute.get(number)
            column = identifier_sql(name)
            if values is not None and answered(f"{column} IN ({literal_sql(values[0])})"):
                asked.append(f"{column} IN ({', '.join(map(literal_sql, values))})")
        if len(asked) < 2:
            return asked[0] if asked else None
        return " AND ".join(f"({each})" for each in asked)


def distinct_keys(column: pa.ChunkedArray) -> pa.Array | None:
    """The values to look up; None if they are too many, or some are not what they seem."""
    values = pc.unique(column).drop_null()
    if not 0 < len(values) <= MOST_KEYS:
        return None
    if pa.types.is_string(values.type) and pc.any(pc.match_substring(values, _BROKEN)).as_py():
        return None
    return values


def joins_in(plan: Any) -> Iterator[Any]:
    """The joins of a plan, without those of sub-queries."""
    return (each for each in nodes(plan) if class_name(each) == _JOIN)


def _restricted(join: Any) -> Iterator[tuple[Any, int, Any, int]]:
    """The side that gives keys and the attribute with them; the side that needs no other rows than
    those with one of these keys, and its attribute."""
    if not join.condition().isDefined():
        return
    left, right, kind = join.left(), join.right(), _join_type(join)
    for one, other in _equal_attributes(join.condition().get()):
        if not left.outputSet().contains(one):
            one, other = other, one
        if not (left.outputSet().contains(one) and right.outputSet().contains(other)):
            continue
        # Random numbers, say, of a CTE that is computed once for several places: of fewer rows they
        # would be others.
        if kind in _RIGHT_NEEDS_LEFT and right.deterministic():
            yield left, attribute_id(one), right, attribute_id(other)
        if kind in _LEFT_NEEDS_RIGHT and left.deterministic():
            yield right, attribute_id(other), left, attribute_id(one)


def _equal_attributes(condition: Any) -> Iterator[tuple[Any, Any]]:
    kind = class_name(condition)
    if kind == f"{_EXPRESSIONS}And":
        yield from _equal_attributes(condition.left())
        yield from _equal_attributes(condition.right())
    elif kind == f"{_EXPRESSIONS}EqualTo":
        left, right = condition.left(), condition.right()
        if class_name(left) == class_name(right) == _ATTRIBUTE:
            type = str(left.dataType().catalogString())
            plain = type in _TYPES or type.startswith("decimal(")
            if plain and type == right.dataType().catalogString():
                yield left, right


def _leaf(plan: Any, attribute: int, below: Callable[[Any, int], Any | None]) -> Leaf | None:
    """The leaf whose attribute it is, under the id that it has there."""
    while not plan.children().isEmpty():
        name = _LISTS.get(class_name(plan))
        if name is not None:
            renamed = _origin(getattr(plan, name)(), attribute)
            if renamed is None:
                return None
            plan, attribute = plan.child(), renamed
            continue
        plan = below(plan, attribute)
        if plan is None:
            return None
    ids = attribute_ids(plan.output())
    return Leaf(plan, ids[0], attribute) if attribute in ids else None


def _origin(columns: Any, attribute: int) -> int | None:
    ids = attribute_ids(columns)
    if attribute not in ids:
        return None
    column = columns.apply(ids.index(attribute))
    source = column.child() if class_name(column) == _ALIAS else column
    return attribute_id(source) if class_name(source) == _ATTRIBUTE else None


def _gives(plan: Any, attribute: int) -> Any | None:
    """The child with all values that the attribute has but NULL."""
    if class_name(plan) == _JOIN:
        return plan.left() if _has(plan.left(), attribute) else _only(plan.right(), attribute)
    return _only(plan.child(), attribute) if class_name(plan) in _NO_NEW_VALUES else None


def _takes(plan: Any, attribute: int) -> Any | None:
    """The child from which rows with other values of the attribute may be left out, since they
    would be missing nowhere else."""
    if class_name(plan) == _JOIN:
        kind = _join_type(plan)
        if _has(plan.left(), attribute):
            return plan.left() if kind in _LEFT_ON_ITS_OWN else None
        return _only(plan.right(), attribute) if kind in _RIGHT_ON_ITS_OWN else None
    return _only(plan.child(), attribute) if class_name(plan) in _ROW_BY_ROW else None


def _only(plan: Any, attribute: int) -> Any | None:
    return plan if _has(plan, attribute) else None


def _has(plan: Any, attribute: int) -> bool:
    return attribute in attribute_ids(plan.output())


def _join_type(join: Any) -> str:
    return class_name(join.joinType()).removeprefix(_PLANS).rstrip("$")
