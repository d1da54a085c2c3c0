"""Restores the query's own description of the columns of a rewritten plan."""

from typing import Any

from hudi_index_service.read.spark.frames import jvm_name, scala_object
from hudi_index_service.sql.catalyst.scala import elements, sequence

_CATALYST = "org.apache.spark.sql.catalyst"
_ALIAS, _PROJECT = "expressions.Alias", "plans.logical.Project"


def described_as(jvm: Any, analyzed: Any, plan: Any) -> Any:
    """The rewritten plan with the names, metadata and nullability of the analyzed plan's columns:
    the optimizer renames ``SELECT ID`` to id again, adds metadata of its own, and infers which
    columns are never NULL."""
    if plan.schema().equals(analyzed.schema()):
        return plan
    option, none = (
        jvm_name(jvm, "scala.Option"),
        scala_object(jvm, "scala.collection.immutable.Nil"),
    )
    alias, project = (jvm_name(jvm, f"{_CATALYST}.{name}") for name in (_ALIAS, _PROJECT))
    names = scala_object(jvm, f"{_CATALYST}.expressions.NamedExpression")
    columns = [
        alias(
            _as_nullable(jvm, attribute, column),
            column.name(),
            names.newExprId(),
            none,
            option.apply(column.metadata()),
            none,
        )
        for attribute, column in zip(
            elements(plan.output()), elements(analyzed.output()), strict=True
        )
    ]
    return project(sequence(jvm, columns), plan)


def _as_nullable(jvm: Any, attribute: Any, column: Any) -> Any:
    if attribute.nullable() == column.nullable():
        return attribute
    wrapper = "KnownNullable" if column.nullable() else "KnownNotNull"
    return jvm_name(jvm, f"{_CATALYST}.expressions.{wrapper}")(attribute)
