"""Base files with columns in other types than the table's: plain queries give Spark's answers."""

from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pytest

from hudi_index_service import open_table
from hudi_index_service.sql.rule.uses import RelationUse
from tests.edited_tables import ROWS, commit_again, put_with_columns
from tests.golden.table import Golden
from tests.spark_rule.conftest import Query

MS = 1_720_569_600_123  # 2024-07-10
MICROS, MILLIS = (
    {"type": "long", "logicalType": f"timestamp-{unit}"} for unit in ("micros", "millis")
)


@pytest.fixture(scope="module")
def path(golden: Golden, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A table with milliseconds that the file says are microseconds, and the last commit not;
    numbers that became text, and a float that became double. Indexed as far as possible, and
    before the last commit."""
    path = tmp_path_factory.mktemp("types") / "table"
    columns = {
        "at": (pa.array(range(MS, MS + ROWS), pa.timestamp("us", "UTC")), MICROS),
        "number": (pa.array(range(-5, ROWS - 5), pa.int64()), "string"),
        "price": (pa.array([each / 10 for each in range(ROWS)], pa.float32()), "double"),
    }
    put_with_columns(golden, path, columns)
    with open_table(path) as table:
        table.create_index("some", ["at", "number", "price", "id"], using="btree")
        assert list(table.build(strategy="all").built[0].skipped) == ["price"]
    commit_again(path, {"at": MILLIS})
    return path


@pytest.mark.parametrize("columns", [["*"], ["id"], ["count(*)"], ["id", "at", "number", "price"]])
@pytest.mark.parametrize(
    "where",
    [
        "at > '2024-01-01'",
        "at < '1971-01-01'",
        "at > '2024-07-10 00:00:00.150'",
        "number = '7'",
        "number LIKE '-%' AND id = '2'",
        "price = 0.1D",
        "id = '7' AND price > 0.1D",
    ],
)
def test_queries_agree(
    agreed: Callable[[str | Query], tuple[RelationUse, ...]],
    costs: Callable[..., None],
    path: Path,
    columns: list[str],
    where: str,
) -> None:
    costs(spark_scan_ms=1e12)
    agreed(
        lambda session: (
            session.read.format("hudi").load(str(path)).where(where).selectExpr(*columns)
        )
    )
