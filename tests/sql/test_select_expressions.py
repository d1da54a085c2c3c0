"""Catalyst's conditions, brought over from the JVM."""

import pytest

from hudi_index_service.sql.select.expression import Described, read_condition, read_conjuncts
from hudi_index_service.sql.select.scala import class_name


@pytest.fixture
def condition(spark):
    """Gives a condition as Spark's analyzer understands it."""
    frame = spark.range(0).selectExpr(
        "id", "named_struct('a', id) AS s", "'' AS msg", "current_date() AS day", "now() AS ts"
    )

    def analyzed(text: str):
        return frame.where(text)._jdf.queryExecution().analyzed().condition()

    return analyzed


def test_a_condition_comes_with_all_its_nodes(condition):
    [below, either] = read_conjuncts(
        read_condition(condition("id < 5 AND (s.a = 3 OR msg LIKE '%x_')"))
    )
    assert below.kind == "LessThan"
    assert [each.kind for each in either.children] == ["EqualTo", "Like"]
    like = either.children[1]
    assert like.children[1].fields["value"] == "%x_"
    assert str(like.java.sql()).endswith("LIKE '%x_'")
    assert class_name(like.children[0].java).endswith(".AttributeReference")


def test_each_node_is_the_one_in_the_jvm(condition):
    """Also below nodes with several children of one kind."""

    def check(expression):
        package, _, name = class_name(expression.java).rpartition(".")
        assert package == "org.apache.spark.sql.catalyst.expressions"
        assert name == expression.kind
        assert expression.java.children().size() == len(expression.children)
        return 1 + sum(map(check, expression.children))

    text = "(id IN (1, 2, 3) OR NOT (id + 1 = 7 AND msg IS NULL)) AND coalesce(msg, 'a') = 'b'"
    assert sum(map(check, read_conjuncts(read_condition(condition(text))))) > 20


def test_what_has_no_json_is_unknown_and_what_stands_beside_it_is_not(condition):
    """None of Spark's own is so."""
    conjunction = Described(None, [], lambda: condition("id = 1 AND (id <> 2 AND id <> 3)"))
    assert [each.kind for each in read_conjuncts(conjunction)] == ["EqualTo", "Not", "Not"]
    [unknown] = read_conjuncts(Described(None, [], lambda: condition("id = 1L OR id = 2L")))
    assert unknown.kind == ""
    assert str(unknown.java.sql()) == "((id = 1L) OR (id = 2L))"


def test_dates_come_as_catalyst_has_them(condition):
    text = "ts = timestamp'1500-01-01 00:00:00.000001' AND day = date'0001-01-01'"
    moment, day = (each.children[1] for each in read_conjuncts(read_condition(condition(text))))
    assert int(moment.fields["value"]) == moment.java.value() < 0
    assert int(day.fields["value"]) == day.java.value() < 0
