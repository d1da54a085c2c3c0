"""Join keys: the known values of one side of a join restrict the other side. Works on optimized
plans; Catalyst's expression ids identify attributes."""

from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from hudi_index_service.predicate.spark_sql import identifier_sql, literal_sql
from hudi_index_service.sql.catalyst.plan_reader import decoded, join_reader
from hudi_index_service.sql.catalyst.relation import Columns

MOST_KEYS = 1_000
"""More literals in a where text take longer than most scans."""

_BROKEN = "\ufffd"  # may stand for bytes that are not UTF-8


@dataclass(frozen=True, slots=True)
class Leaf:
    """A leaf of a plan, and one of its attributes.

    Attributes:
        kind: The full name of its class.
        number: Identifies the leaf: the id of its first attribute.
        attribute: The attribute's id.
        place: The attribute's position in the leaf's output.
        node: Returns the leaf in the JVM.
    """

    kind: str
    number: int
    attribute: int
    place: int
    node: Callable[[], Any]


Values = Callable[[Leaf], pa.Array | None]
"""The values of an attribute; None if they are unknown or too many."""


@dataclass(slots=True)
class JoinKeys:
    """The keys found so far.

    Attributes:
        by_attribute: For attributes of Hudi relations, the values that the query's joins need.
        changed: The number of such attributes of each relation, by the relation's number.
        shared: The numbers of relations that occur several times, such as in a CTE that is computed
            once. The join of one occurrence does not restrict the others.
    """

    by_attribute: dict[int, pa.Array] = field(default_factory=dict)
    changed: Counter[int] = field(default_factory=Counter)
    shared: set[int] = field(default_factory=set)
    _links: list[tuple[Leaf, Leaf]] = field(default_factory=list)

    def look_at(self, plans: Iterable[Any]) -> None:
        """Finds the leaves of some plans whose joins can take keys from other leaves."""
        seen: set[int] = set()
        for plan in plans:
            joins = decoded(join_reader(plan).read(plan))
            leaves = joins["leaves"]
            for number in (each["ids"][0] for each in leaves if each["table"] is not None):
                (self.shared if number in seen else seen).add(number)
            for giving, key, taking, attribute in joins["links"]:
                if leaves[taking]["table"] is not None:
                    source = _leaf(plan, giving, leaves[giving], key)
                    self._links.append((source, _leaf(plan, taking, leaves[taking], attribute)))

    def learn(self, values: Values, can_use_keys: Callable[[int], bool]) -> bool:
        """Collects keys from leaves with known values. Returns whether there are new ones.

        Args:
            can_use_keys: Whether a relation, by its number, can use keys.
        """
        found = False
        for source, target in self._links:
            if target.attribute in self.by_attribute or not can_use_keys(target.number):
                continue
            keys = values(source)
            if keys is not None:
                self.by_attribute[target.attribute] = keys
                self.changed[target.number] += 1
                found = True
        return found

    def condition(self, columns: Columns, can_answer: Callable[[str], bool]) -> str | None:
        """The keys of a relation with these columns as a where text; None without keys.

        Args:
            can_answer: Whether the service supports a where text on the relation's table.
        """
        conditions = []
        for number, name in zip(columns.ids, columns.names, strict=True):
            values = self.by_attribute.get(number)
            column = identifier_sql(name)
            if values is not None and can_answer(f"{column} IN ({literal_sql(values[0])})"):
                conditions.append(f"{column} IN ({', '.join(map(literal_sql, values))})")
        if len(conditions) < 2:
            return conditions[0] if conditions else None
        return " AND ".join(f"({each})" for each in conditions)


def distinct_keys(column: pa.ChunkedArray) -> pa.Array | None:
    """The distinct values to look up; None if they are too many, or some may be damaged text."""
    values = pc.unique(column).drop_null()
    if not 0 < len(values) <= MOST_KEYS:
        return None
    if pa.types.is_string(values.type) and pc.any(pc.match_substring(values, _BROKEN)).as_py():
        return None
    return values


def _leaf(plan: Any, number: int, description: dict[str, Any], attribute: int) -> Leaf:
    """A leaf of a plan, and one of its attributes.

    Args:
        number: The leaf's position among the plan's leaves.
        description: The leaf as `JoinReader.java` describes it.
        attribute: The attribute's id.
    """
    ids, node = description["ids"], partial(join_reader(plan).leaf, plan, number)
    return Leaf(description["kind"], ids[0], attribute, ids.index(attribute), node)
