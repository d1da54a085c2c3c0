"""Examples of a Hypothesis strategy as a list: the same ones in every run."""

from typing import TypeVar
from unittest import mock

from hypothesis import HealthCheck, Phase, given, seed, settings
from hypothesis import strategies as st
from hypothesis.internal.cache import LRUCache
from hypothesis.internal.conjecture import providers
from hypothesis.internal.constants_ast import Constants

T = TypeVar("T")


def drawn(strategy: st.SearchStrategy[T], count: int, number: int) -> list[T]:
    """`count` different examples; another `number` gives other ones.

    They are collected first and checked together, since a Spark job takes as long for one predicate
    as for hundreds.
    """
    found: dict[str, T] = {}
    # Hypothesis also tries constants from the source of all modules imported so far.
    with (
        mock.patch.object(providers, "_get_local_constants", return_value=Constants()),
        mock.patch.object(providers, "CONSTANTS_CACHE", LRUCache(1024)),
    ):
        while len(found) < count + 1:
            for example in _some(strategy, count * 8 // 5 + 2, number):
                found.setdefault(str(example), example)
            number += 1_000_003
    # The first example is always the simplest one.
    return list(found.values())[1 : count + 1]


def _some(strategy: st.SearchStrategy[T], count: int, number: int) -> list[T]:
    found: list[T] = []

    @seed(number)
    @settings(
        max_examples=count,
        database=None,
        deadline=None,
        phases=(Phase.generate,),
        suppress_health_check=list(HealthCheck),
    )
    @given(strategy)
    def take(example: T) -> None:
        found.append(example)

    take()
    return found
