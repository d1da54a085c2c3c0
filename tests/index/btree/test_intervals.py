"""Sets of keys as intervals."""

from hypothesis import given
from hypothesis import strategies as st

from hudi_index_service.index.btree.keys import (
    Interval,
    after,
    intersection,
    point,
    prefixed,
)
from hudi_index_service.predicate.bounds import above_prefix
from tests.example_counts import examples

BYTES = [b"", b"\x00", b"a", b"a\x00", b"ab", b"a\xff", b"a\xff\xff", b"b", b"\xff", b"\xff\xff"]


def disjoint_intervals(ends: list[bytes]) -> list[Interval]:
    """Disjoint intervals in order, made of pairs of neighboring ends."""
    ordered = sorted({*ends})
    return [Interval(a, b) for a, b in zip(ordered[::2], ordered[1::2], strict=False)]


@examples(300)
@given(
    one=st.lists(st.sampled_from(BYTES), max_size=8),
    other=st.lists(st.sampled_from(BYTES), max_size=8),
    open_end=st.booleans(),
)
def test_an_intersection_contains_the_keys_in_both(
    one: list[bytes], other: list[bytes], open_end: bool
) -> None:
    left, right = disjoint_intervals(one), disjoint_intervals(other)
    if open_end and left:
        left[-1] = Interval(left[-1].low, None)
    both = intersection(left, right)
    for key in [*BYTES, *map(after, BYTES)]:
        in_both = any(each.holds(key) for each in left) and any(each.holds(key) for each in right)
        assert in_both == any(each.holds(key) for each in both)
    assert list(both) == sorted(both, key=lambda each: each.low)


def test_points_and_prefixes_contain_exactly_their_keys() -> None:
    for key in BYTES:
        assert [other for other in BYTES if point(key).holds(other)] == [key]
        starting = [other for other in BYTES if other.startswith(key)]
        assert [other for other in BYTES if prefixed(key).holds(other)] == starting
    assert above_prefix(b"a\xff") == b"b"
    assert above_prefix(b"\xff\xff") is None
