"""The guide docs/guides/hbase.md runs as it stands, apart from the server's address."""

import shlex
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from dev.hbase import HBase
from hudi_index_service import open_table
from hudi_index_service.config import settings as settings_of_process
from tests.docs.markdown import only_block
from tests.hbase.conftest import Cells
from tests.hudi_tables import NO_METADATA_TABLE, hudi_options, read_rows, write

GUIDE = "docs/guides/hbase.md"


@pytest.mark.usefixtures("own_state")  # which forgets the settings afterwards
def test_index_in_hbase(
    hbase: HBase, spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    hbase.create_namespaces("indexes")
    for line in only_block(GUIDE, "sh", "HUDI_INDEX_HBASE__HOST").splitlines():
        export, *variables = shlex.split(line)
        assert export == "export"
        for variable in variables:
            name, _, value = variable.partition("=")
            monkeypatch.setenv(name, value)
    monkeypatch.setenv("HUDI_INDEX_HBASE__HOST", hbase.host)
    monkeypatch.setenv("HUDI_INDEX_HBASE__PORT", str(hbase.port))
    settings_of_process.cache_clear()

    path = tmp_path / "messages"
    rows = spark.range(300).selectExpr(
        "cast(id AS string) AS id", "id * 3 AS amount", "concat('User', id % 10) AS sender"
    )
    write(rows, path, hudi_options("messages", ordering_column=None, **NO_METADATA_TABLE))

    with open_table(path) as table:
        exec(only_block(GUIDE, "python", "in_hbase"), {"table": table})
        table.build(strategy="all").raise_for_failures()
        where = "sender = 'User7' AND amount < 300"
        found = table.scan(where, columns=["id"], use_index="require").to_arrow()
    assert sorted(found["id"].to_pylist()) == sorted(
        row.id for row in read_rows(spark, path).where(where).collect()
    )
    assert found.num_rows == 10
    cells = Cells(hbase, "indexes:hudi_index")
    assert cells.all()
    cells.drop()
