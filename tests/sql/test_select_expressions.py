"""Catalyst's conditions, brought over from the JVM."""

import pytest

from hudi_index_service.sql.select.expression import read_conjuncts
from hudi_index_service.sql.select.scala import class_name


@pytest.fixture
def condition(spark):
    """Gives a condition as Spark's analyzer understands it."""
    frame = spark.range(0).selectExpr("id", "named_struct('a', id) AS s", "'' AS msg")

    def analyzed(text: str):
        return frame.where(text)._jdf.queryExecution().analyzed().condition()

    return analyzed


def test_a_condition_comes_with_all_its_nodes(condition):
    [below, either] = read_conjuncts(condition("id < 5 AND (s.a = 3 OR msg LIKE '%x_')"))
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
    assert sum(map(check, read_conjuncts(condition(text)))) > 20


class Conjunction:
    """One whose sides cannot all be written as JSON: none of Spark's own is so."""

    def __init__(self, jvm, left, right, kind="And"):
        self._hudi_index_class_name = f"org.apache.spark.sql.catalyst.expressions.{kind}"
        self.toJSON = lambda: jvm.java.lang.Integer.parseInt("no JSON")
        self.left, self.right = (lambda: left), (lambda: right)


def test_what_has_no_json_is_unknown_and_what_stands_beside_it_is_not(spark, condition):
    other = Conjunction(spark._jvm, None, None, kind="Or")
    node = Conjunction(spark._jvm, condition("id = 1 AND id <> 2"), other)
    assert [each.kind for each in read_conjuncts(node)] == ["EqualTo", "Not", ""]
