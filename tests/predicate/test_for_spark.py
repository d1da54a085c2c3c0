"""Unsupported conditions: plain ones are left to Spark, others are refused."""

import pytest

from hudi_index_service.predicate.text.for_spark import is_for_spark


@pytest.mark.parametrize(
    "where",
    [
        "msg RLIKE '(?=new)car'",
        "amount + 1 > price * 2",
        "upper(name) = 'PLAIN' AND (amount > 3 OR id IN ('1', '2'))",
        "cast(amount AS decimal(10, 2)) = 1.50",
        "CASE WHEN flag THEN (small) ELSE 0 END = 1",
        "tags[0] = 'x' -- reflect('java.lang.System', 'exit', 1)",
        "name = 'select (from) reflect(x)' AND `from` = length(msg)",
        "amount :: string LIKE '1%'",
    ],
)
def test_plain_conditions_are_left_to_spark(where: str) -> None:
    assert is_for_spark(where)


@pytest.mark.parametrize(
    "where",
    [
        "id IN (SELECT id FROM other)",
        "EXISTS (VALUES (1))",
        "id IN (TABLE other)",
        "reflect('java.lang.System', 'exit', 1) = 'x'",
        "java_method('java.lang.System', 'getenv', 'HOME') = id",
        "`reflect`('java.lang.System', 'exit', 1) = 'x'",
        "reflect /* */ ('java.lang.System', 'exit', 1) = 'x'",
        "spark_catalog.default.upper(name) = 'X'",
        "current_user() = id",
        "rand() < 0.5",
        "match(msg, 'car') AND name RLIKE '(?=x)'",
        "name RLIKE '(?=${env:HOME})'",
        "amount = 1; DROP TABLE t",
        "name = 'open",
    ],
)
def test_other_conditions_are_refused(where: str) -> None:
    assert not is_for_spark(where)
