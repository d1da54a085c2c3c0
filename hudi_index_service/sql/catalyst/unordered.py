"""Expressions whose values depend on a row's file, or on which task reads the row and when."""

import re
from collections.abc import Iterable

_OF_FILES = re.compile(r"\binput_file_")
_OF_TASKS = re.compile(r"\bmonotonically_increasing_id\(|\bSPARK_PARTITION_ID\(", re.IGNORECASE)
# The SQL shows whether the query gives the seed.
_SEEDED = re.compile(r"\brand(?:n|om)?\([^)]")


def left_to_spark(indeterminate: Iterable[str]) -> str | None:
    """The reason why only Spark's own reader may be below a plan node; None if any reader may.

    Results that may differ at each run anyway do not matter: ``rand()``, ``uuid()``, ``first`` and
    ``collect_list`` without an order, or LIMIT without ORDER BY.

    Args:
        indeterminate: The node's nondeterministic expressions, as SQL.
    """
    for text in indeterminate:
        if _OF_FILES.search(text):
            return "the query asks for the names of files"
        if _OF_TASKS.search(text):
            return "the query numbers rows or tasks"
        if _SEEDED.search(text):
            return "the query has random numbers with a seed"
    return None
