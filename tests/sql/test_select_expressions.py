"""Catalyst's conditions, converted from the JVM."""

import pytest

from hudi_index_service.sql.catalyst.expression import Described, read_condition, read_conjuncts
from hudi_index_service.sql.catalyst.scala import class_name


@pytest.fixture
def condition(spark):
    """Returns a condition as Spark's analyzer resolves it."""
    frame = spark.range(0).selectExpr(
        "id", "named_struct('a', id) AS s", "'' AS msg", "current_date() AS day", "now() AS ts"
    )

    def analyzed(text: str):
        return frame.where(text)._jdf.queryExecution().analyzed().condition()

    return analyzed


def test_condition_is_read_with_all_its_nodes(condition):
    [below, either] = read_conjuncts(
        read_condition(condition("id < 5 AND (s.a = 3 OR msg LIKE '%x_')"))
    )
    assert below.kind == "LessThan"
    assert [each.kind for each in either.children] == ["EqualTo", "Like"]
    like = either.children[1]
    assert like.children[1].fields["value"] == "%x_"
    assert str(like.java.sql()).endswith("LIKE '%x_'")
    assert class_name(like.children[0].java).endswith(".AttributeReference")


def test_nodes_refer_to_their_jvm_objects(condition):
    """Also below nodes that have several children of one kind."""

    def check(expression):
        package, _, name = class_name(expression.java).rpartition(".")
        assert package == "org.apache.spark.sql.catalyst.expressions"
        assert name == expression.kind
        assert expression.java.children().size() == len(expression.children)
        return 1 + sum(map(check, expression.children))

    text = "(id IN (1, 2, 3) OR NOT (id + 1 = 7 AND msg IS NULL)) AND coalesce(msg, 'a') = 'b'"
    assert sum(map(check, read_conjuncts(read_condition(condition(text))))) > 20


def test_node_without_json_is_unknown_and_its_siblings_are_not(condition):
    """No node of Spark's own lacks JSON."""
    conjunction = Described(None, [], lambda: condition("id = 1 AND (id <> 2 AND id <> 3)"))
    assert [each.kind for each in read_conjuncts(conjunction)] == ["EqualTo", "Not", "Not"]
    [unknown] = read_conjuncts(Described(None, [], lambda: condition("id = 1L OR id = 2L")))
    assert unknown.kind == ""
    assert str(unknown.java.sql()) == "((id = 1L) OR (id = 2L))"


def test_dates_and_timestamps_keep_catalysts_values(condition):
    text = "ts = timestamp'1500-01-01 00:00:00.000001' AND day = date'0001-01-01'"
    moment, day = (each.children[1] for each in read_conjuncts(read_condition(condition(text))))
    assert int(moment.fields["value"]) == moment.java.value() < 0
    assert int(day.fields["value"]) == day.java.value() < 0
