"""Generated queries return the same rows, names, types and nullability with the rule as without,
and use the index as often as ever."""

# ruff: noqa: S608 - the queries are the test's own

import os
import random

import pytest

from tests.spark_rule.conftest import KINDS, by_index, compared

_SEED = int(os.environ.get("PROOF_SEED", "19"))
BY_INDEX = (27, 31, 31, 31, 28, 28)
"""How many relations of each portion are read by index, with the usual seed."""
BY_INDEX_IN_TASKS = (13, 12)

_LITERALS = {
    "id": lambda r: f"'{r.randrange(220)}'",
    "msg": lambda r: f"'Buying car {r.randrange(9)}'",
    "amount": lambda r: str(r.randrange(620)),
    "age": lambda r: str(r.randrange(55)),
    "price": lambda r: f"{r.randrange(100) / 4}",
    "score": lambda r: r.choice([f"{r.randrange(200) / 8}D", "DOUBLE('NaN')", "-0.0D"]),
    "day": lambda r: f"DATE'2026-0{r.randrange(1, 4)}-{r.randrange(10, 28)}'",
    "at": lambda r: f"TIMESTAMP'2026-01-0{r.randrange(1, 9)} {r.randrange(10, 24)}:00:00'",
    "place.city": lambda r: f"'city {r.randrange(11)}'",
    "dt": lambda r: f"'2026-01-0{r.randrange(1, 4)}'",
}
_OPERATORS = ("=", "=", "<", "<=", ">", ">=", "<=>", "<>")


def _leaf(r: random.Random) -> str:
    column = r.choice(list(_LITERALS))
    literal = _LITERALS[column]
    match r.randrange(8):
        case 0:
            return f"{column} IN ({', '.join(literal(r) for _ in range(r.choice([1, 3, 12])))})"
        case 1:
            return f"{column} IS {r.choice(['', 'NOT '])}NULL"
        case 2:
            return f"{column} BETWEEN {literal(r)} AND {literal(r)}"
        case 3:
            return r.choice(
                [
                    "msg LIKE 'Buying car 3%'",
                    "msg LIKE '%car 2'",
                    "id LIKE '1_'",
                    "id RLIKE '^1[0-3]'",
                ]
            )
        case 4:
            return r.choice(
                [
                    "flag",
                    "NOT flag",
                    "array_contains(tags, '3')",
                    "upper(msg) = 'BUYING CAR 4'",
                    "amount = age * 3",
                    "length(id) = 2",
                    "place.zip = 3",
                ]
            )
    return f"{column} {r.choice(_OPERATORS)} {literal(r)}"


def _condition(r: random.Random, depth: int = 2) -> str:
    if depth == 0 or r.random() < 0.3:
        return _leaf(r)
    if r.random() < 0.15:
        return f"NOT ({_condition(r, depth - 1)})"
    word = r.choice([" AND ", " AND ", " OR "])
    return f"({word.join(_condition(r, depth - 1) for _ in range(2))})"


def _query(r: random.Random) -> str:
    table, other = r.choice(KINDS), r.choice(KINDS)
    where, more = _condition(r), _condition(r)
    match r.randrange(12):
        case 0:
            return f"SELECT * FROM {table} WHERE {where} AND {more}"
        case 1:
            return f"SELECT msg, count(*) AS n, sum(amount) FROM {table} WHERE {where} GROUP BY msg"
        case 2:
            kind = r.choice(["JOIN", "LEFT JOIN", "RIGHT JOIN", "FULL JOIN", "LEFT SEMI JOIN"])
            return (
                f"SELECT a.* FROM (SELECT id, msg, day FROM {table} WHERE {where}) a {kind} "
                f"(SELECT id AS k, age FROM {other} WHERE {more}) b ON a.id = b.k"
            )
        case 3:
            word = r.choice(["IN", "NOT IN"])
            return (
                f"SELECT id, place FROM {table} WHERE {where} AND id {word} "
                f"(SELECT id FROM {other} WHERE {more})"
            )
        case 4:
            return (
                f"SELECT id, tags FROM {table} a WHERE {r.choice(['', 'NOT '])}EXISTS (SELECT 1 "
                f"FROM {other} b WHERE a.amount = b.amount AND b.age < 20) AND {where}"
            )
        case 5:
            return (
                f"SELECT id, at FROM {table} WHERE amount > (SELECT avg(amount) FROM {other} "
                f"WHERE {more}) AND {where}"
            )
        case 6:
            union = r.choice(["UNION", "UNION ALL", "EXCEPT", "INTERSECT"])
            return (
                f"SELECT id, dt FROM {table} WHERE {where} {union} "
                f"SELECT id, dt FROM {other} WHERE {more}"
            )
        case 7:
            return (
                f"SELECT id, row_number() OVER (PARTITION BY dt ORDER BY id) AS n FROM {table} "
                f"WHERE {where}"
            )
        case 8:
            counts = ", ".join(r.sample(["count(*)", "count(age)", "count(place.city)"], 2))
            group = r.choice(["", "GROUP BY msg", "GROUP BY dt", "GROUP BY id HAVING count(*) > 0"])
            return f"SELECT {counts} FROM {table} WHERE {where} {group}"
        case 9:
            return (
                f"SELECT EXISTS (SELECT 1 FROM {table} WHERE {where}) AS e, "
                f"(SELECT count(*) FROM (SELECT 1 FROM {other} WHERE {more} LIMIT 3)) AS n"
            )
    columns = ", ".join(r.sample(["id", "msg", "score", "price", "place.city", "tags", "flag"], 3))
    return f"SELECT {columns} FROM {table} WHERE {where} AND {more}"


@pytest.mark.parametrize("portion", range(len(BY_INDEX)))
def test_generated_queries(spark, enabled, tables, portion):
    r = random.Random(_SEED * 100 + portion)
    used = _compared(spark, enabled, [_query(r) for _ in range(20)])
    if _SEED == 19:
        assert used >= BY_INDEX[portion]


@pytest.mark.parametrize("portion", range(len(BY_INDEX_IN_TASKS)))
def test_generated_queries_by_tasks(spark, enabled, tables, read_by_tasks, portion):
    r = random.Random(_SEED * 1000 + portion)
    used = _compared(spark, enabled, [_query(r) for _ in range(10)])
    if _SEED == 19:
        assert used >= BY_INDEX_IN_TASKS[portion]


def _compared(spark, enabled, queries):
    """How many relations were read by index, in all queries."""
    used = sum(sum(by_index(compared(enabled, spark, query))) for query in queries)
    assert used >= len(queries) // 3
    return used
