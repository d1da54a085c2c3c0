"""An index type's runtime is missing: builds are refused at once, queries scan."""

import json
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from hudi_index_service import IndexedTable, open_table
from hudi_index_service.errors import NativeModuleMissing
from tests.programs import ended

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

BUILD = """
import json, sys
from hudi_index_service import open_table
from hudi_index_service.errors import IndexServiceError

with open_table(sys.argv[1]) as table:
    print(len(table.build(strategy="all", dry_run=True).due))
    try:
        table.build(strategy="all")
    except IndexServiceError as error:
        print(json.dumps({"code": error.code, "message": error.message, "remedy": error.remedy}))
"""

QUERY = """
import json, logging, sys
from hudi_index_service import open_table
from hudi_index_service.errors import IndexRequired

logging.basicConfig(level=logging.WARNING, format="%(message)s")
with open_table(sys.argv[1]) as table:
    assert table.build(strategy="all").due == ()
    counts = [table.scan("amount = 31").count() for _ in range(3)]
    rows = table.scan("amount > 20").to_arrow().num_rows
    try:
        table.scan("amount = 31", use_index="require").count()
    except IndexRequired as error:
        print(json.dumps({"counts": counts, "rows": rows, "remedy": error.remedy}))
"""

REMEDY = "Install JDK 17, 21 or 25 and set JAVA_HOME to its folder."


def test_a_build_without_its_java_is_refused_before_it_begins(
    cow: IndexedTable, java_26: Path
) -> None:
    refused = ended(BUILD, cow.uri, JAVA_HOME=str(java_26))

    due, error = refused.stdout.splitlines()
    assert due == "2", "a dry run needs no Java"
    assert json.loads(error) == {
        "code": "NATIVE_MODULE_MISSING",
        "message": f"lucene needs Java 17 to 25, but {java_26} is Java 26.",
        "remedy": REMEDY,
    }
    assert refused.stderr == ""
    assert cow.builds() == []
    assert not Path(cow.uri, ".hoodie/.index/lucene").exists()


def test_without_java_empty_builds_succeed_and_queries_scan(
    cow: IndexedTable, java_26: Path
) -> None:
    cow.build(strategy="all").raise_for_failures()
    expected = cow.scan("amount = 31").count()
    rows = cow.scan("amount > 20", use_index="never").to_arrow().num_rows

    queried = ended(QUERY, cow.uri, JAVA_HOME=str(java_26))

    assert json.loads(queried.stdout) == {"counts": [expected] * 3, "rows": rows, "remedy": REMEDY}
    (warning,) = queried.stderr.splitlines()
    assert warning == (
        "Queries are answered without an index: NATIVE_MODULE_MISSING: lucene needs Java 17 to 25, "
        f"but {java_26} is Java 26. {REMEDY}"
    )


def test_the_java_of_spark_executors_is_checked(
    spark: "SparkSession", cow: IndexedTable, java_26: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Has the effect of spark.executorEnv.JAVA_HOME.
    monkeypatch.setitem(spark.sparkContext.environment, "JAVA_HOME", str(java_26))

    with pytest.raises(NativeModuleMissing) as refused:
        open_table(cow.uri, spark=spark).build(strategy="all")

    assert refused.value.message.startswith("On Spark's executor ")
    assert refused.value.message.endswith(
        f": lucene needs Java 17 to 25, but {java_26} is Java 26."
    )
    assert "spark.executorEnv.<NAME>" in refused.value.remedy
    assert cow.builds() == []
