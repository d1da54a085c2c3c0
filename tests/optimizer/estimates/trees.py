"""Predicates of any nesting."""

import pyarrow as pa
from hypothesis import strategies as st

from hudi_index_service.predicate.expression import (
    BoundColumn,
    Constant,
    IsNull,
    Predicate,
    conjunction,
    disjunction,
)

_LEAVES = 6


def leaf(number: int) -> Predicate:
    """The leaf with this number."""
    return IsNull(BoundColumn(f"c{number}", pa.int32()))


def trees(
    leaves: st.SearchStrategy[Predicate] | None = None,
) -> st.SearchStrategy[Predicate]:
    """ANDs and ORs of leaves and constants, of any nesting."""
    some = st.integers(0, _LEAVES - 1).map(leaf) if leaves is None else leaves
    constants: st.SearchStrategy[Predicate] = st.sampled_from((True, False, None)).map(Constant)
    return st.recursive(
        some | some | constants,
        lambda below: st.lists(below, min_size=2, max_size=4).flatmap(
            lambda parts: st.sampled_from((conjunction(parts), disjunction(parts)))
        ),
        max_leaves=8,
    )
