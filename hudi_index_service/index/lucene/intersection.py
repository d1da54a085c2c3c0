"""Intersects searches in the same field of a column with one value per row."""

from hudi_index_service.index.lucene.search import (
    AllOf,
    PointRange,
    Points,
    Prefix,
    Search,
    TermRange,
    Terms,
)


def above_prefix(start: bytes) -> bytes | None:
    """The least byte string above all that begin with `start`; None if there is none."""
    stem = start.rstrip(b"\xff")
    return stem[:-1] + bytes([stem[-1] + 1]) if stem else None


def intersection(one: Search, other: Search) -> Search | None:
    """The search for the rows that both searches find, if no row has two values in the field. None
    if one search cannot express it."""
    if isinstance(one, AllOf) or isinstance(other, AllOf) or one.field != other.field:
        return None
    match one, other:
        case ((Points() | PointRange()), (Points() | PointRange())):
            return _of_points(one, other)
        case ((Terms() | TermRange() | Prefix()), (Terms() | TermRange() | Prefix())):
            return _of_terms(one, other)
    return None


def _of_points(one: Points | PointRange, other: Points | PointRange) -> Search:
    match one, other:
        case PointRange(), PointRange():
            low, high = max(one.low, other.low), min(one.high, other.high)
            if low > high:
                return Points(one.field, (), one.wide)
            return PointRange(one.field, low, high, one.wide)
        case PointRange(), Points():
            return _of_points(other, one)
        case Points(points=points), PointRange(low=low, high=high):
            return Points(one.field, tuple(p for p in points if low <= p <= high), one.wide)
        case Points(points=points), Points(points=others):
            return Points(one.field, tuple(sorted({*points} & {*others})), one.wide)
    raise TypeError(one, other)


def _of_terms(one: Terms | TermRange | Prefix, other: Terms | TermRange | Prefix) -> Search:
    one, other = _as_range(one), _as_range(other)
    match one, other:
        case TermRange(), Terms():
            return _of_terms(other, one)
        case Terms(terms=terms), TermRange():
            return Terms(one.field, tuple(filter(other.holds, terms)))
        case Terms(terms=terms), Terms(terms=others):
            return Terms(one.field, tuple(sorted({*terms} & {*others})))
        case TermRange(), TermRange():
            return _of_ranges(one, other)
    raise TypeError(one, other)


def _as_range(search: Terms | TermRange | Prefix) -> Terms | TermRange:
    if isinstance(search, Prefix):
        return TermRange(search.field, search.prefix, above_prefix(search.prefix), True, False)
    return search


def _of_ranges(one: TermRange, other: TermRange) -> Terms | TermRange:
    # Of two equal bounds, the exclusive one wins.
    low, no_low = max(_low(one), _low(other))
    high, has_high = one.high, one.high_included
    if other.high is not None and (
        high is None or (other.high, other.high_included) < (high, has_high)
    ):
        high, has_high = other.high, other.high_included
    if high is not None and (low > high or (low == high and (no_low or not has_high))):
        return Terms(one.field, ())
    return TermRange(one.field, low, high, not no_low, has_high)


def _low(search: TermRange) -> tuple[bytes, bool]:
    """The lower bound, and whether it is exclusive; no term is below the empty one."""
    return (b"", False) if search.low is None else (search.low, not search.low_included)
