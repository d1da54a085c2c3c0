"""A rewritten plan's columns under the names that the query gives them."""

from typing import Any

from hudi_index_service.read.spark.frames import jvm_name, scala_object
from hudi_index_service.sql.catalyst.scala import elements, sequence

_CATALYST = "org.apache.spark.sql.catalyst"
_ALIAS, _PROJECT = "expressions.Alias", "plans.logical.Project"


def described_as(jvm: Any, analyzed: Any, found: Any) -> Any:
    """The rewritten plan with columns as Spark's analyzer describes them: the optimizer calls
    ``SELECT ID`` id again, adds metadata of its own, and finds out what is never NULL."""
    if found.schema().equals(analyzed.schema()):
        return found
    option, none = (
        jvm_name(jvm, "scala.Option"),
        scala_object(jvm, "scala.collection.immutable.Nil"),
    )
    alias, project = (jvm_name(jvm, f"{_CATALYST}.{name}") for name in (_ALIAS, _PROJECT))
    names = scala_object(jvm, f"{_CATALYST}.expressions.NamedExpression")
    columns = [
        alias(
            _as_nullable(jvm, attribute, wanted),
            wanted.name(),
            names.newExprId(),
            none,
            option.apply(wanted.metadata()),
            none,
        )
        for attribute, wanted in zip(
            elements(found.output()), elements(analyzed.output()), strict=True
        )
    ]
    return project(sequence(jvm, columns), found)


def _as_nullable(jvm: Any, attribute: Any, wanted: Any) -> Any:
    if attribute.nullable() == wanted.nullable():
        return attribute
    known = "KnownNullable" if wanted.nullable() else "KnownNotNull"
    return jvm_name(jvm, f"{_CATALYST}.expressions.{known}")(attribute)
