"""Random predicates over a small table: Spark's results, and the invariants of rewriting."""

import math
import random
from datetime import UTC, date, datetime
from decimal import Decimal

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hudi_index_service.predicate import evaluate, keep, negation_normal_form, parse_predicate
from hudi_index_service.predicate.expression import And, Not, Or
from tests.example_counts import examples

pytestmark = pytest.mark.fast

SEED = 20240101
TREES = 200
FILTERS = 30

DATA = pa.table(
    {
        "i": pa.array([None, 0, 1, 2, 7, -1, 2**31 - 1, 1], pa.int32()),
        "l": pa.array([None, 2**53, 2**53 + 1, 7, -(2**63), 0, 1, 2**63 - 1], pa.int64()),
        "f": pa.array([None, 0.1, math.nan, -0.0, 1.5, math.inf, 0.0, 7.0], pa.float32()),
        "d": pa.array([None, 0.1, math.nan, -0.0, 1.5, -math.inf, 0.0, 7.0], pa.float64()),
        "m": pa.array(
            [None, *map(Decimal, ("0.10", "1.50", "-1.50", "0", "7", "99999999.99", "0.01"))],
            pa.decimal128(10, 2),
        ),
        "s": pa.array([None, "", "a", "a%", "😀", "a\nb", "ab", "7"]),
        "b": pa.array([None, True, False, True, None, False, True, None]),
        "day": pa.array([None, *(date(y, 1, 1) for y in (1, 1970, 2024, 9999, 2000, 2001, 2002))]),
        "list": pa.array([None, [], [None], [1], [1, None], [2], [7, 1], [2, None]]),
        "struct": pa.array([None, *({"x": x} for x in (None, 0, 1, 2, 7, 1, -1))]),
        "t": pa.array(
            [None, *(datetime(2024, 1, 1, h, tzinfo=UTC) for h in range(7))],
            pa.timestamp("us", "UTC"),
        ),
    }
)

NUMBERS = ["0", "1", "7", "1.5", "0.1", "-1", "7.0", "0.1D", "1.5F", "2147483647", "2147483648"]
NUMBERS += ["'7'", "'x'", "NULL", "9007199254740992D", "9007199254740993", "-1.50", "1e0"]
LITERALS = {
    **{column: [*NUMBERS, "CAST('NaN' AS DOUBLE)"] for column in "ilm"},
    **{
        column: [*NUMBERS, "CAST('NaN' AS DOUBLE)", "-0.0D", "'NaN'", "'-Infinity'"]
        for column in "fd"
    },
    "s": ["'a'", "''", "'😀'", "'a%'", "'7'", "NULL", r"'a\nb'"],
    "b": ["TRUE", "FALSE", "NULL", "'yes'"],
    "day": ["DATE'1970-01-01'", "'2024'", "'x'", "NULL", "TIMESTAMP'2000-01-01 12:00:00'"],
    "t": ["TIMESTAMP'2024-01-01 02:00:00'", "'2024-01-01 03:00:00'", "DATE'2024-01-01'", "NULL"],
}
LISTED = {
    **{column: ["0", "1", "7", "1.5", "0.1D", "2147483648", "NULL"] for column in "ilm"},
    **{column: ["0", "0.1", "1.5D", "CAST('NaN' AS DOUBLE)", "NULL"] for column in "fd"},
    "s": ["'a'", "''", "'😀'", "7", "NULL"],
    "b": ["TRUE", "FALSE", "NULL"],
    "day": ["DATE'1970-01-01'", "'2024-01-01'", "'2024-1-1'", "NULL"],
    "t": ["TIMESTAMP'2024-01-01 02:00:00'", "'2024-01-01 03:00:00'", "NULL"],
}
PATTERNS = ["'a%'", "'%'", "'_'", r"'a\\%'", "'%b'", "'a_b'", "'%a%b%'", "''", "'a!%' ESCAPE '!'"]

REGEXES = ["'^a'", "'b$'", "'a|7'", "'^[a-b]+$'", "'.'", "'^$'", "'(a|😀)b?'", "'x{2,3}'"]

NESTED = ["array_contains(list, 1)", "array_contains(list, 3)", "struct.x > 1", "struct.x IS NULL"]


def random_leaf(choose: random.Random) -> str:
    column = choose.choice(list(LITERALS))
    negation = choose.choice(["", "NOT "])
    match choose.randrange(9):
        case 0:
            return f"{column} IS {negation}NULL"
        case 1:
            values = choose.choices(LISTED[column], k=choose.randint(1, 3))
            return f"{column} {negation}IN ({', '.join(values)})"
        case 2:
            low, high = choose.choices(LITERALS[column], k=2)
            return f"{column} {negation}BETWEEN {low} AND {high}"
        case 3:
            return f"s {negation}LIKE {choose.choice(PATTERNS)}"
        case 4:
            return choose.choice(["b", "TRUE", "FALSE", "CAST(NULL AS BOOLEAN)", *NESTED])
        case 5:
            return f"s {negation}RLIKE {choose.choice(REGEXES)}"
        case _:
            operator = choose.choice(["=", "<=>", "<>", "<", "<=", ">", ">="])
            literal = choose.choice(LITERALS[column])
            swapped = choose.random() < 0.2
            sides = (literal, column) if swapped else (column, literal)
            return f"{sides[0]} {operator} {sides[1]}"


def random_tree(choose: random.Random, depth: int) -> str:
    if depth == 0 or choose.random() < 0.2:
        return random_leaf(choose)
    if choose.random() < 0.25:
        return f"NOT ({random_tree(choose, depth - 1)})"
    joint = choose.choice([" AND ", " OR "])
    operands = (random_tree(choose, depth - 1) for _ in range(choose.randint(2, 3)))
    return joint.join(f"({operand})" for operand in operands)


def test_random_predicates_give_sparks_results(spark_answers):
    choose = random.Random(SEED)
    wheres = [random_tree(choose, depth=1 + n % 4) for n in range(TREES)]
    for where, truth in zip(wheres, spark_answers(DATA, wheres), strict=True):
        predicate = parse_predicate(where, DATA.schema)
        assert evaluate(predicate, DATA).to_pylist() == truth, where
        assert evaluate(negation_normal_form(predicate), DATA).to_pylist() == truth, where


def test_spark_filter_on_a_file_keeps_the_same_rows(spark, tmp_path):
    """As a real filter that Spark pushes down to Parquet, which then skips row groups. The reader
    that is not vectorized also lets Parquet drop rows, and for Parquet -0.0 is not in (0.0)."""
    numbered = DATA.append_column("row", pa.array(range(len(DATA))))
    pq.write_table(numbered, tmp_path / "data.parquet")
    frame = spark.read.option("datetimeRebaseMode", "CORRECTED").parquet(str(tmp_path))
    choose = random.Random(SEED + 1)
    for _ in range(FILTERS):
        where = random_tree(choose, depth=1)
        kept = keep(parse_predicate(where, DATA.schema), numbered).column("row").to_pylist()
        assert sorted(row.row for row in frame.where(where).select("row").collect()) == kept, where


wheres = st.builds(
    random_tree, st.randoms(use_true_random=False), st.integers(min_value=0, max_value=4)
)


@examples(300)
@given(wheres, st.integers(min_value=1, max_value=4))
def test_forms_texts_and_batches_of_a_predicate_give_the_same_results(where, rows):
    predicate = parse_predicate(where, DATA.schema)
    expected = evaluate(predicate, DATA)

    normal = negation_normal_form(predicate)
    assert evaluate(normal, DATA) == expected
    assert negation_normal_form(normal) == normal
    assert all(not node.operand.children for node in nodes(normal) if isinstance(node, Not))

    again = parse_predicate(str(predicate), DATA.schema)
    assert str(again) == str(predicate)
    assert evaluate(again, DATA) == expected
    if "NaN" not in str(predicate):  # Arrow's NaN scalars are not equal
        assert again == predicate
        assert hash(again) == hash(predicate)

    batches = DATA.to_batches(max_chunksize=rows)
    assert pa.concat_arrays([evaluate(predicate, batch) for batch in batches]) == expected
    assert evaluate(predicate, pa.Table.from_batches(batches)) == expected
    assert len(evaluate(predicate, DATA.slice(0, 0))) == 0


def nodes(predicate):
    yield predicate
    for child in predicate.children:
        yield from nodes(child)


def test_nested_operators_of_the_same_kind_are_flattened():
    def parse(where):
        return parse_predicate(where, DATA.schema)

    flat = parse("i = 1 AND i = 2 AND i = 3")
    assert parse("i = 1 AND (i = 2 AND i = 3)") == flat
    assert isinstance(flat, And)
    assert len(flat.operands) == 3
    either = parse("(i = 1 OR i = 2) OR i = 3")
    assert isinstance(either, Or)
    assert len(either.operands) == 3
