"""What an index type states of the time that it takes."""

from typing import NamedTuple


class TypeCosts(NamedTuple):
    """What the steps of reading an index take, in milliseconds.

    Attributes:
        open_ms: Opening an entry whose bytes are on the local disk.
        lookup_ms: A condition.
        listed_ms: A value of a list.
        step_ms: A row found.
    """

    open_ms: float
    lookup_ms: float
    listed_ms: float
    step_ms: float
