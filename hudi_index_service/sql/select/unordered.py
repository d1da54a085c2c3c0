"""Expressions whose values depend on which file a row lies in, or on which task reads it when."""

import re
from typing import Any

from hudi_index_service.sql.select.scala import elements

_OF_FILES = "input_file_"
_OF_TASKS = re.compile(r"monotonically_increasing_id\(|SPARK_PARTITION_ID\(")
_RANDOM = re.compile(r"\brand(?:n|om)?\(")
_SEEDED = re.compile(r"\brand(?:n|om)?\([^)]")


def left_to_spark(node: Any) -> str | None:
    """Why only Spark's own reader may stand below a node of a plan; None if that does not matter.

    Of what may be another at each run anyway, such as ``rand()``, ``uuid()``, ``first`` and
    ``collect_list`` without an order, or LIMIT without ORDER BY, that is not thought.
    """
    text = str(node.expressions().mkString(","))
    if _OF_FILES in text:
        return "the query asks for the names of files"
    if _OF_TASKS.search(text):
        return "the query numbers rows or tasks"
    # Only as SQL is it told apart whether somebody chose the seed.
    if _RANDOM.search(text) and any(
        _SEEDED.search(str(each.sql())) for each in elements(node.expressions())
    ):
        return "the query has random numbers with a seed"
    return None
