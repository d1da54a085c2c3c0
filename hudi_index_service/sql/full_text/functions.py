"""The names of full-text functions in a Spark session.

Spark's parser and analyzer take any query that calls them, once functions of these names are there.
They are temporary functions that do nothing by themselves: what a call searches for, and by which
analyser, is found in the analyzed plan of the query (`calls`).
"""

import re
from collections.abc import Mapping
from functools import cache
from threading import Lock
from typing import TYPE_CHECKING, Any, NoReturn

from pyspark.errors import AnalysisException
from pyspark.sql.types import BooleanType, DataType, FloatType
from pyspark.sql.udf import UserDefinedFunction

from hudi_index_service.errors import PredicateUnsupported
from hudi_index_service.predicate.expression import MatchMode
from hudi_index_service.sql.full_text.tree import PYTHON_CALL
from hudi_index_service.sql.select.scala import class_name

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

SCORE = "score"
RETURNED: dict[str, DataType] = {
    **{mode.value: BooleanType() for mode in MatchMode},
    SCORE: FloatType(),
}
"""By name, what a function returns."""

_CALL = re.compile(rf"\b({'|'.join(RETURNED)})\s*\(", re.IGNORECASE)
_registering = Lock()
_BY_ROW = 100  # PythonEvalType of a plain function


class Unbound:
    """What stands behind a name until a query of `IndexSession` gives it a meaning."""

    def __init__(self, name: str) -> None:
        self._name = name

    def __call__(self, *_: object) -> NoReturn:
        raise PredicateUnsupported(
            f"{self._name} was not called in a query of IndexSession.sql.",
            remedy="Ask IndexSession(spark).sql for the rows first, in a SELECT, then write or "
            "transform its DataFrame.",
        )


class FullTextFunctions:
    """The functions in one session. They are there while a query is analyzed that calls them, and
    only where that query finds no other function of the name: a function of the user's own always
    wins, and the session stays as it was."""

    def __init__(self, spark: "SparkSession") -> None:
        self._spark = spark
        self.java = cache(self._made)
        """Gives the function with a name as it is registered."""

    def sql(self, query: str, args: Any, **kwargs: Any) -> "DataFrame":
        """``spark.sql``, for queries that may call the functions."""
        named = {each[1].lower() for each in _CALL.finditer(query)}
        if not named:
            try:
                return self._spark.sql(query, args, **kwargs)
            except AnalysisException as error:  # in a view, perhaps
                unknown = _unknown_function(error)
                if unknown not in RETURNED:
                    raise
                named = {unknown}
        with _registering:
            return self._with_functions(named, query, args, kwargs)

    def _with_functions(
        self, named: set[str], query: str, args: Any, kwargs: Mapping[str, Any]
    ) -> "DataFrame":
        registered: set[str] = set()
        try:
            for name in named:
                if not self._spark.catalog.functionExists(name):
                    self._register(name, registered)
            while True:
                try:
                    return self._spark.sql(query, args, **kwargs)
                except AnalysisException as error:
                    unknown = _unknown_function(error)
                    if unknown not in RETURNED or unknown in registered:
                        raise
                self._register(unknown, registered)
        finally:
            catalog = self._spark._jsparkSession.sessionState().catalog()
            for name in registered:
                catalog.dropTempFunction(name, True)

    def _register(self, name: str, registered: set[str]) -> None:
        registered.add(name)
        self._spark._jsparkSession.udf().registerPython(name, self.java(name))

    def name(self, expression: Any) -> str | None:
        """Which of the functions an expression of Catalyst's calls; None if it is another."""
        if class_name(expression) != PYTHON_CALL:
            return None
        name = str(expression.name())
        if name not in RETURNED:
            return None
        same = expression.func().command().equals(self.java(name).func().command())
        return name if same else None

    def _made(self, name: str) -> Any:
        return UserDefinedFunction(Unbound(name), RETURNED[name], name, _BY_ROW)._judf


def _unknown_function(error: AnalysisException) -> str:
    """The function that a query calls and nobody knows; "" if something else is wrong."""
    if error.getErrorClass() != "UNRESOLVED_ROUTINE":
        return ""
    parameters = error.getMessageParameters() or {}
    return parameters.get("routineName", "").strip("`").lower()
