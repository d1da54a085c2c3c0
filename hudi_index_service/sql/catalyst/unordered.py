"""Expressions whose values depend on which file a row lies in, or on which task reads it when."""

import re
from collections.abc import Iterable

_OF_FILES = re.compile(r"\binput_file_")
_OF_TASKS = re.compile(r"\bmonotonically_increasing_id\(|\bSPARK_PARTITION_ID\(", re.IGNORECASE)
# As SQL it is told apart whether somebody chose the seed.
_SEEDED = re.compile(r"\brand(?:n|om)?\([^)]")


def left_to_spark(indeterminate: Iterable[str]) -> str | None:
    """Why only Spark's own reader may stand below a node of a plan; None if that does not matter.

    Of what may be another at each run anyway, such as ``rand()``, ``uuid()``, ``first`` and
    ``collect_list`` without an order, or LIMIT without ORDER BY, that is not thought.

    Args:
        indeterminate: The node's expressions that are not deterministic, as SQL.
    """
    for text in indeterminate:
        if _OF_FILES.search(text):
            return "the query asks for the names of files"
        if _OF_TASKS.search(text):
            return "the query numbers rows or tasks"
        if _SEEDED.search(text):
            return "the query has random numbers with a seed"
    return None
