"""What the tables of a family share: the types and names of their columns, the values to draw from,
and the time zone. Thus one Spark job serves them all."""

import random
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
from hypothesis import strategies as st

from tests.proof.kinds import (
    BINARY,
    BOOLEAN,
    DATE,
    DOUBLE,
    FLOAT,
    INT,
    LONG,
    MESSAGE,
    PARTITIONED_BY,
    STRING,
    TIMESTAMP,
    Kind,
    decimals,
)


@dataclass(frozen=True)
class Place:
    """A column or a field of one: its name in predicates, its kind, and its values.

    Attributes:
        array: Whether the column is an array of the kind's values.
        pool: The values that rows draw from; None among them is NULL.
    """

    name: str
    kind: Kind
    pool: tuple[Any, ...]
    array: bool = False

    @property
    def type_name(self) -> str:
        """The type under which comparisons are counted."""
        outer = "array<{}>" if self.array else "{} in a struct" if "." in self.name else "{}"
        return outer.format(self.kind.name)

    @property
    def values(self) -> list[Any]:
        """The pool without NULL."""
        return [value for value in self.pool if value is not None]


ID = Place("id", STRING, ("key 7", "key 40", "key 151", "key 299", "key 1000"))
"""The record key of every table."""

BROKEN = "broken"
"""A column of texts, some of which are not UTF-8 in some tables: conditions on it are answered, or
refused, but its values can not be returned."""


@dataclass(frozen=True)
class Family:
    """What the tables have in common.

    Attributes:
        places: The places by name.
        part: The column that some tables are partitioned by; the first two values of its pool are
            those of the partitions.
        time_zone: The session time zone of all queries.
    """

    places: Mapping[str, Place]
    part: Place
    time_zone: str

    @property
    def predicate_places(self) -> tuple[Place, ...]:
        """The places that predicates are on."""
        return (*self.places.values(), ID, self.part)

    @property
    def schema(self) -> pa.Schema:
        """The columns, without keys."""
        fields = []
        for name, root in self._roots().items():
            fields.append(pa.field(name, _arrow(root)))
        return pa.schema(fields)

    def rows(self, seed: int, count: int) -> list[dict[str, Any]]:
        """`count` rows, the same for the same seed."""
        dice = random.Random(seed)
        return [
            {name: _value(root, dice) for name, root in self._roots().items()} for _ in range(count)
        ]

    def _roots(self) -> dict[str, Any]:
        """The columns: a place, or a struct's content by field."""
        roots: dict[str, Any] = {}
        for place in self.places.values():
            *structs, name = place.name.split(".")
            inner = roots
            for struct in structs:
                inner = inner.setdefault(struct, {})
            inner[name] = place
        return roots


def _arrow(root: Any) -> pa.DataType:
    if isinstance(root, dict):
        return pa.struct([(name, _arrow(field)) for name, field in root.items()])
    return pa.list_(root.kind.arrow) if root.array else root.kind.arrow


def _value(root: Any, dice: random.Random) -> Any:
    if isinstance(root, dict):
        if dice.random() < 0.15:
            return None
        return {name: _value(field, dice) for name, field in root.items()}
    if not root.array:
        return dice.choice(root.pool)
    if dice.random() < 0.15:
        return None
    return dice.choices(root.pool, k=dice.choice((0, 1, 1, 2, 3)))


@st.composite
def families(draw: Callable[[st.SearchStrategy[Any]], Any], time_zone: str) -> Family:
    """Families, with fewer or more distinct values and NULLs in each column."""
    narrow = decimals("decimal of 64 bits", draw(st.integers(1, 18)), draw(st.integers(0, 1)))
    scale = draw(st.integers(0, 19))
    wide = decimals("decimal of 128 bits", draw(st.integers(19, 38 - scale)) + scale, scale)
    kinds = {
        "flag": BOOLEAN,
        "n": INT,
        "big": LONG,
        "f": FLOAT,
        "d": DOUBLE,
        "cents": narrow,
        "huge": wide,
        "s": STRING,
        "Name": STRING,
        BROKEN: STRING,
        "msg": MESSAGE,
        "raw": BINARY,
        "day": DATE,
        "at": TIMESTAMP,
        "place.City": STRING,
        "place.zip": INT,
        "place.geo.lat": DOUBLE,
        "place.geo.since": DATE,
    }
    arrays = {
        "tags": STRING,
        "codes": INT,
        "counts": LONG,
        "reals": DOUBLE,
        "sums": wide,
        "days": DATE,
        # No array of timestamps: with log files these need Spark (test_found.py).
        "blobs": BINARY,
    }
    places = {}
    for name, kind in (kinds | arrays).items():
        values = draw(st.lists(kind.values, min_size=2, max_size=12))
        nulls = draw(st.integers(0, len(values)))
        pool = (*values, *[None] * nulls)
        places[name] = Place(name, kind, pool, array=name in arrays)
    kind, values = draw(st.sampled_from(PARTITIONED_BY))
    paths = draw(st.permutations((*values, None)))
    return Family(places, Place("part", kind, tuple(paths)), time_zone)
