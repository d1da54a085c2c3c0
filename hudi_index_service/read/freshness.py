"""What a query asks of the indexes' coverage, how it waits for it, and how an answer says what it
leaves out."""

from collections.abc import Callable
from dataclasses import dataclass
from json import dumps, loads
from numbers import Real
from time import monotonic, sleep
from typing import Self, TypeVar

import pyarrow as pa

from hudi_index_service.cancellation import check
from hudi_index_service.errors import ConfigInvalid, NotCovered
from hudi_index_service.hudi.timeline import instant_of

T = TypeVar("T")

FAST = "hudi_index.fast"
"""The key in the metadata of a fast query's schema."""

POLL_SECONDS = 0.25
"""Between two looks at the timeline and the entries, of a query that waits."""

MOST_WAIT = 3600.0
"""Seconds."""


@dataclass(frozen=True, slots=True)
class Freshness:
    """What a query asks of coverage. Make it by `of`.

    Attributes:
        fast: Whether the rows of slices without an entry that serves the query are left out.
        covered_to: Answer only if the snapshot has this requested time, and each of its base files
            that was written by then and may have rows has such an entry; None for any answer.
        wait: The seconds to wait for that.
    """

    fast: bool = False
    covered_to: str | None = None
    wait: float = 0.0

    @classmethod
    def of(cls, *, fast: bool, only_if_covered_to: str | None, wait: float) -> Self:
        """From a user's arguments.

        Args:
            only_if_covered_to: A time in one of the forms of `instant_of`.

        Raises:
            ConfigInvalid: one is wrong, or `wait` has nothing to wait for.
        """
        if not isinstance(fast, bool):
            raise ConfigInvalid(f"Unknown value: fast={fast!r}.", remedy="Use True or False.")
        if not (_is_number(wait) and 0 <= wait <= MOST_WAIT):
            raise ConfigInvalid(
                f"wait={wait!r} is not a time to wait.",
                remedy=f"Use a number of seconds from 0 to {MOST_WAIT:.0f}.",
            )
        if only_if_covered_to is None:
            if wait:
                raise ConfigInvalid(
                    "wait has nothing to wait for.", remedy="Pass only_if_covered_to, too."
                )
            return cls(fast)
        return cls(fast, instant_of(only_if_covered_to, "only_if_covered_to"), float(wait))

    def awaited(self, plan: Callable[[], T]) -> T:
        """The result of a plan, which is made again, every `POLL_SECONDS`, while the table is not
        covered and there is time to wait.

        Raises:
            NotCovered: it is still not.
            QueryCancelled: nobody waits any more.
        """
        until = monotonic() + self.wait
        while True:
            try:
                return plan()
            except NotCovered:
                rest = until - monotonic()
                if rest <= 0:
                    raise
            check()
            sleep(min(rest, POLL_SECONDS))


def _is_number(value: object) -> bool:
    return isinstance(value, Real)


ANY = Freshness()


def said(left_out: int) -> dict[str, int]:
    """What the answer to a fast query says of the base files that were left out."""
    return {"files_left_out": left_out}


def saying(schema: pa.Schema, left_out: int | None) -> pa.Schema:
    """The schema of a fast query's rows, with `said` as JSON in its metadata; that of other queries
    is as it was."""
    if left_out is None:
        return schema
    return schema.with_metadata({**(schema.metadata or {}), FAST: dumps(said(left_out))})


def left_out_of(schema: pa.Schema) -> int | None:
    """How many base files were left out of rows with this schema; None if the query is to have all
    rows."""
    told = (schema.metadata or {}).get(FAST.encode())
    return None if told is None else int(loads(told)["files_left_out"])
