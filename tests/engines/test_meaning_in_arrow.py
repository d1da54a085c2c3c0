"""A filter of Arrow on a dataset means what it means to Arrow: generated expressions on a table and
on the same rows in memory."""

from functools import reduce
from operator import and_, or_
from random import Random

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds
import pyarrow.parquet as pq
import pytest

from hudi_index_service import HudiDataset
from tests.engines.drawn_values import COLUMNS, Values

COMPARISONS = ("__eq__", "__ne__", "__lt__", "__le__", "__gt__", "__ge__")


def arrow_expression(
    random: Random, values: Values, schema: pa.Schema, depth: int
) -> pc.Expression:
    """A filter of comparisons, IN, tests for NULL and NaN, their negations and connections."""
    if depth == 0 or random.random() < 0.3:
        return _leaf(random, values, schema)
    if random.random() < 0.3:
        return ~arrow_expression(random, values, schema, depth - 1)
    parts = [arrow_expression(random, values, schema, depth - 1) for _ in range(2)]
    return reduce(random.choice((and_, or_)), parts)


def _leaf(random: Random, values: Values, schema: pa.Schema) -> pc.Expression:
    name = random.choice(COLUMNS)
    kind: pa.Schema | pa.DataType = schema
    for part in name.split("."):
        kind = kind.field(part).type
    own, value = pc.field(*name.split(".")), values.one(random, name)
    match random.randrange(8):
        case 0:
            return own.is_null(nan_is_null=random.random() < 0.3)
        case 1:
            return own.is_valid()
        case 2:
            some = values.some(random, name) + [None] * (random.random() < 0.2)
            return own.isin(pa.array(some, kind))
        case 3:
            listed = own.isin(pa.array(values.some(random, name), kind))
            return pc.if_else(own.is_valid(), listed, pa.scalar(None, pa.bool_()))
        case 4 if pa.types.is_floating(kind):
            return pc.is_nan(own)
        case 4 if pa.types.is_boolean(kind):
            return own
        case 5:
            return pc.field("amount") > random.choice((1.5, 300, float("nan")))
        case 6:
            return pc.starts_with(pc.field("name"), "a") | pc.scalar(False)
    return getattr(own, random.choice(COMPARISONS))(pa.scalar(value, kind))


@pytest.mark.parametrize(
    ("seed", "count"), [(1, 300), pytest.param(2, 5_000, marks=pytest.mark.slow)]
)
@pytest.mark.timeout(1800)
def test_arrow_finds_the_rows_that_it_finds_in_memory(seed, count, table, plain, values):
    random, found_any = Random(seed), 0
    ours, rows = HudiDataset(table), pq.read_table(plain).cast(table.schema())
    in_memory = ds.InMemoryDataset(rows)
    for number in range(count):
        expression = arrow_expression(random, values, rows.schema, depth=3)
        expected = in_memory.to_table(columns=["id"], filter=expression)["id"].to_pylist()
        found = ours.to_table(columns=["id"], filter=expression)["id"].to_pylist()
        assert sorted(found) == sorted(expected), (number, str(expression))
        assert ours.count_rows(filter=expression) == len(expected), (number, str(expression))
        found_any += 0 < len(expected) < len(rows)
    assert found_any > count / 2
