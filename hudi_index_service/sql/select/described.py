"""A rewritten plan's columns under the names that the query gives them."""

from typing import Any

from hudi_index_service.read.spark import module
from hudi_index_service.sql.select.scala import elements, sequence


def described_as(jvm: Any, analyzed: Any, found: Any) -> Any:
    """The rewritten plan with columns as Spark's analyzer describes them: the optimizer calls
    ``SELECT ID`` id again, adds metadata of its own, and finds out what is never NULL."""
    if found.schema().equals(analyzed.schema()):
        return found
    catalyst, option = jvm.org.apache.spark.sql.catalyst, jvm.scala.Option
    none = module(jvm.scala.collection.immutable, "Nil")
    columns = [
        catalyst.expressions.Alias(
            _as_nullable(catalyst.expressions, attribute, wanted),
            wanted.name(),
            catalyst.expressions.NamedExpression.newExprId(),
            none,
            option.apply(wanted.metadata()),
            none,
        )
        for attribute, wanted in zip(
            elements(found.output()), elements(analyzed.output()), strict=True
        )
    ]
    return catalyst.plans.logical.Project(sequence(jvm, columns), found)


def _as_nullable(expressions: Any, attribute: Any, wanted: Any) -> Any:
    if attribute.nullable() == wanted.nullable():
        return attribute
    known = expressions.KnownNullable if wanted.nullable() else expressions.KnownNotNull
    return known(attribute)
