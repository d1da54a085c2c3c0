"""The names of full-text functions in a Spark session.

Spark's parser and analyzer accept queries that call them once functions of these names exist. These
are temporary functions that do nothing themselves: the search text and analyzer of a call come from
the query's analyzed plan (`calls`).
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
from hudi_index_service.sql.catalyst.scala import class_name
from hudi_index_service.sql.full_text.tree import PYTHON_CALL

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

SCORE = "score"
RETURNED: dict[str, DataType] = {
    **{mode.value: BooleanType() for mode in MatchMode},
    SCORE: FloatType(),
}
"""Function name → return type."""

_CALL = re.compile(rf"\b({'|'.join(RETURNED)})\s*\(", re.IGNORECASE)
_registering = Lock()
_BY_ROW = 100  # PythonEvalType of a plain function


class Unbound:
    """The function registered under a name until a query of `IndexSession` binds it."""

    def __init__(self, name: str) -> None:
        self._name = name

    def __call__(self, *_: object) -> NoReturn:
        raise PredicateUnsupported(
            f"{self._name} was not called in a query of IndexSession.sql.",
            remedy="First select the rows with IndexSession(spark).sql, then write or transform "
            "its DataFrame.",
        )


class FullTextFunctions:
    """The functions in one session. They exist only while a query that calls them is analyzed, and
    only if the session has no other function of the name: the user's own functions take precedence,
    and the session stays unchanged."""

    def __init__(self, spark: "SparkSession") -> None:
        self._spark = spark
        self.java = cache(self._make)
        """Returns the registered function of a name."""

    def sql(self, query: str, args: Any, **kwargs: Any) -> "DataFrame":
        """``spark.sql``, for queries that may call the functions."""
        names = {each[1].lower() for each in _CALL.finditer(query)}
        if not names:
            try:
                return self._spark.sql(query, args, **kwargs)
            except AnalysisException as error:  # in a view, perhaps
                unknown = _unknown_function(error)
                if unknown not in RETURNED:
                    raise
                names = {unknown}
        with _registering:
            return self._with_functions(names, query, args, kwargs)

    def _with_functions(
        self, names: set[str], query: str, args: Any, kwargs: Mapping[str, Any]
    ) -> "DataFrame":
        registered: set[str] = set()
        try:
            for name in names:
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
        """The name of the function that a Catalyst expression calls; None if it calls another."""
        if class_name(expression) != PYTHON_CALL:
            return None
        name = str(expression.name())
        if name not in RETURNED:
            return None
        same = expression.func().command().equals(self.java(name).func().command())
        return name if same else None

    def _make(self, name: str) -> Any:
        return UserDefinedFunction(Unbound(name), RETURNED[name], name, _BY_ROW)._judf


def _unknown_function(error: AnalysisException) -> str:
    """The unresolved function that a query calls; "" for any other error."""
    if error.getErrorClass() != "UNRESOLVED_ROUTINE":
        return ""
    parameters = error.getMessageParameters() or {}
    return parameters.get("routineName", "").strip("`").lower()
