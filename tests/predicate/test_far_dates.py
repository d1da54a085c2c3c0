"""Dates and timestamps beyond Python's year 9999, which Spark supports."""

import pyarrow as pa
import pytest

from hudi_index_service.predicate import evaluate, parse_predicate

FAR_DAY = 3_700_007  # days since the epoch


@pytest.mark.parametrize(
    ("days", "literals"),
    [
        (pa.array([0, FAR_DAY, None], pa.int32()).cast(pa.date32()), "DATE'{}', DATE'2024-01-01'"),
        (
            pa.array([0, FAR_DAY * 86_400_000_000, None], pa.int64()).cast(
                pa.timestamp("us", "UTC")
            ),
            "TIMESTAMP'{} 00:00:00', TIMESTAMP'2024-01-01 00:00:00'",
        ),
    ],
    ids=["date", "timestamp"],
)
def test_in_list_with_far_dates(days: pa.Array, literals: str) -> None:
    batch = pa.record_batch({"day": days})
    predicate = parse_predicate(f"day IN ({literals.format('+12100-04-11')})", batch.schema)
    assert evaluate(predicate, batch).to_pylist() == [False, True, None]


def test_far_date_literals_are_compared() -> None:
    batch = pa.record_batch({"day": pa.array([0], pa.date32())})
    predicate = parse_predicate("DATE'+12100-04-11' > DATE'9999-12-31'", batch.schema)
    assert evaluate(predicate, batch).to_pylist() == [True]
