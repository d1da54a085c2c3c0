"""The command line on a real table, and where no extra is installed: what it prints. For its errors
see tests/mistakes."""

import json
from pathlib import Path

import pytest

from hudi_index_service import Column, IndexedTable
from hudi_index_service.maintain.status import TableStatus
from tests.indexed import OwnTable
from tests.programs import Command, ended


@pytest.fixture
def table(own_table: OwnTable) -> str:
    """A clustered table with an index that is not built yet."""
    msg = Column(name="msg", options={"analyzer": "standard"})
    defined = {"name": "by_amount", "defined": "written", "build": False}
    return own_table("two_hundred_rows", ["amount", msg], **defined).uri


def test_all_commands_from_definition_to_query(table: str, command: Command) -> None:
    assert json.loads(command("show", table))["columns"] == "amount, msg"
    assert "1 due, 1 built, 0 failed" in command("build", table)
    assert "0 due, 0 built, 0 failed" in command("build", table)
    status = json.loads(command("status", table, "-o", "json"))
    assert status["indexes"][0]["covered"] == 1
    assert status["builds"][0]["state"] == "finished"
    where = "amount < 30"
    rows = [
        json.loads(line)
        for line in command(
            "query", table, where, "--columns", "id,AMOUNT", "-o", "json", "--use-index", "require"
        ).splitlines()
    ]
    assert sorted(row["amount"] for row in rows) == list(range(0, 30, 3))
    assert command("query", table, where, "--count").strip() == str(len(rows))
    assert command("query", table, where, "-o", "text").endswith(f"{len(rows)} rows\n")
    assert command("query", table, "amount < 0", "-o", "csv", "--columns", "id,msg") == "id,msg\n"
    explanation = json.loads(command("explain", table, where, "--analyze", "-o", "json"))
    assert explanation["uses_index"] is True
    assert explanation["actual"]["rows_returned"] == len(rows)
    assert "1 by index" in command("explain", table, where)
    written, clustered = explanation["instant"][:8], explanation["instant"]
    for as_of in (clustered, f"{written[:4]}-{written[4:6]}-{written[6:]} 23:59:59"):
        assert command("query", table, where, "--count", "--as-of", as_of).strip() == str(len(rows))
    base_files = command("explain", table, where, "--query-type", "read_optimized")
    assert f"instant  {clustered}, base files alone" in base_files
    assert "0 problems" in command("verify", table)
    assert "0 files removed" in command("clean", table)


def test_a_missing_file_is_reported_in_one_line(
    table: str, monkeypatch: pytest.MonkeyPatch, command: Command
) -> None:
    def status(opened: IndexedTable) -> TableStatus:
        opened.hudi_table.storage.read("gone.parquet")
        raise AssertionError("the file is not there")

    monkeypatch.setattr(IndexedTable, "status", status)
    (line,) = command("status", table, status=1).splitlines()
    assert line.startswith("SNAPSHOT_CHANGED: A file that the command needs is missing: ")
    assert f"{table}/gone.parquet" in line
    assert line.endswith("has just removed it, run the command again.")


def test_keys_of_a_write_config_define_and_build_an_index(
    table: str, tmp_path: Path, command: Command
) -> None:
    properties = tmp_path / "hudi-write.properties"
    properties.write_text("hoodie.table.name=cli\nhoodie.index.columns=ts;id\n")
    keys = ("--props", str(properties), "--hoodie-conf", "hoodie.index.strategy=all")

    assert "1 due" in command("build", table, *keys)
    assert "0 due" in command("build", table, *keys)
    command("watch", table, "--once", *keys)

    shown = map(json.loads, command("show", table).splitlines())
    by_name = {each["name"]: each for each in shown}
    assert by_name["write_config"]["columns"] == "ts, id"


BLOCKED = """
import sys
class Missing:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in {missing}:
            raise ModuleNotFoundError(f"No module named {{name!r}}", name=name)
sys.meta_path.insert(0, Missing())
from hudi_index_service.cli import main
sys.exit(main({arguments}))
"""
MISSING = (
    *("pyspark", "py4j", "pandas", "starlette", "uvicorn", "h11", "airflow", "happybase"),
    *("hdfs_native", "boto3", "pymetastore"),
)


@pytest.mark.parametrize(
    ("arguments", "code", "printed"),
    [
        (["--help"], 0, "Row-exact secondary indexes"),
        (["sql", "SHOW INDEXES FROM t"], 1, "pip install 'hudi-index-service[spark]'"),
        (["serve", "."], 1, "pip install 'hudi-index-service[hook]'"),
        (["serve-spark", "."], 1, "pip install 'hudi-index-service[spark,hook]'"),
    ],
)
def test_commands_name_the_extra_that_they_lack(
    arguments: list[str], code: int, printed: str
) -> None:
    program = BLOCKED.format(missing=MISSING, arguments=arguments)
    done = ended(program)
    assert (done.returncode, printed in done.stdout + done.stderr) == (code, True), done.stderr
    assert "Traceback" not in done.stderr
