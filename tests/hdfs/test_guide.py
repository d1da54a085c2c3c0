"""The guide docs/guides/hdfs.md runs as it stands, apart from addresses and the table's folder."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from dev.hdfs import Hdfs
from hudi_index_service import open_table
from hudi_index_service.storage.store import Storage
from tests.docs.markdown import only_block
from tests.golden.table import Golden
from tests.hdfs.conftest import mirror, name_service
from tests.same_rows import assert_same_rows

GUIDE = "docs/guides/hdfs.md"


def block(containing: str, places: Mapping[str, str]) -> str:
    code = only_block(GUIDE, "python", containing)
    for named, real in places.items():
        code = code.replace(named, real)
    return code


def test_tables_by_name_node_and_by_name_service(
    hdfs: Hdfs, storage: Storage, golden: Golden, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    mirror(golden("version_9").put(tmp_path / "messages"), storage)
    name_nodes = [f"{hdfs.host}:{hdfs.standby}", f"{hdfs.host}:{hdfs.port}"]
    places = {
        "namenode:8020": f"{hdfs.host}:{hdfs.port}",
        "host1:8020": name_nodes[0],
        "host2:8020": name_nodes[1],
        "/data/messages": storage.uri.removeprefix(hdfs.uri),
    }
    names: dict[str, Any] = {"open_table": open_table}

    def opened(code: str) -> None:
        exec(code, names)
        found = names["table"].scan("amount = 12").to_arrow()
        assert_same_rows(found, golden("version_9").answer("amount = 12"))

    opened(block("storage_options", places))

    by_name_node, by_configuration = block("# a name service", places).splitlines()
    opened(by_name_node)
    rows = "".join(
        f"<property><name>{name}</name><value>{value}</value></property>"
        for name, value in name_service(*name_nodes).items()
    )
    (tmp_path / "hdfs-site.xml").write_text(f"<configuration>{rows}</configuration>")
    monkeypatch.setenv("HADOOP_CONF_DIR", str(tmp_path))
    opened(by_configuration)
