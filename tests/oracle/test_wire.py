"""Two releases on one fleet: the jar of an earlier one asks today's service, and today's jar an
earlier service, about a table that is written and built meanwhile. The answers are Spark's."""

import re
import tarfile
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from io import BytesIO
from pathlib import Path
from typing import Any

import httpx
import pyspark
import pytest
from pyspark.sql import SparkSession

from dev import oracle
from dev.prerequisites import find_jdk
from hudi_index_service.fleet.forms.answer import ADDRESS, EXTENSIONS, TOKEN
from hudi_index_service.fleet.web.access import Role
from tests.fleet.served import FILE_START, PROGRAM, SECRETS, token_file
from tests.hudi_tables import hudi_options, numbered_rows, run_clustering, write
from tests.programs import Running, awaited, logged, output_of
from tests.spark_rule.without_python import (
    JAR,
    Statement,
    process,
    settings_file,
    thrift_server,
)

pytestmark = [pytest.mark.slow, pytest.mark.timeout(1800)]

EARLIEST = "9a65894a5b07561ce87156c72cd580fd359a7de2"
"""The commit with the first jar that asks a service."""

FILE = (
    FILE_START
    + """\
groups:
- name: shop
  include: ["{table}"]
"""
)
ROWS, COMMITS = 20_000, 6
QUERIES = (
    "SELECT id, msg, amount, ts, dt FROM orders WHERE id IN ('7', '77', '777', '{last}')",
    "SELECT id, amount FROM orders WHERE id LIKE '1999%' AND amount > 10",
    "SELECT count(*), sum(ts) FROM orders WHERE id = '{first}' OR id BETWEEN '500' AND '5002'",
)


@pytest.fixture
def earliest_jar(tmp_path: Path) -> Path:
    """The jar of the rule as of `EARLIEST`."""
    work, jar = tmp_path / "jar", tmp_path / "earliest.jar"
    with (
        skipped_without_history(),
        tarfile.open(fileobj=BytesIO(oracle.archived(EARLIEST, "native/spark_rule/java"))) as files,
    ):
        files.extractall(work, filter="data")
    tools, classes = find_jdk().home / "bin", work / "classes"
    spark = Path(pyspark.__file__).parent / "jars" / "*"
    compiled = ["--release", "17", "-proc:none", "-nowarn", "-classpath", spark, "-d", classes]
    output_of([tools / "javac", *compiled, *work.rglob("*.java")])
    output_of([tools / "jar", "--create", "--file", jar, "-C", classes, "."])
    return jar


@pytest.fixture
def earlier_service(tmp_path: Path) -> Iterator[Path]:
    """The oracle answers for the folder ``lake``: the file with its sessions' settings."""
    with skipped_without_history():
        folder = oracle.made()
    own, work = oracle.environment(), tmp_path / "earlier"
    work.mkdir()
    where = "import hudi_index_service; print(hudi_index_service.__file__)"
    found = output_of([oracle.PYTHON, "-c", where], own, cwd=work)
    assert Path(found.strip()).is_relative_to(folder)
    variables = (f"{name}={value}" for name, value in own.items())
    command = ["env", *variables, str(oracle.PYTHON), "-m", "hudi_index_service", "serve-spark"]
    with process([*command, str(tmp_path / "lake"), "--port", "0"], work, "service") as started:
        yield Path(logged(started, r"token of this run, are in (.+\.properties); only this user"))


@contextmanager
def skipped_without_history() -> Iterator[None]:
    """Skips the test where the checkout has no earlier commits."""
    try:
        yield
    except oracle.NoHistory as absent:
        pytest.skip(str(absent))


@pytest.fixture
def service(tmp_path: Path, running: Running, monkeypatch: pytest.MonkeyPatch) -> dict[str, str]:
    """Today's service of a fleet builds the table, and answers: its sessions' settings."""
    (tmp_path / "fleet.yaml").write_text(FILE.format(table=tmp_path / "lake" / "orders"))
    monkeypatch.setenv("HUDI_INDEX_WEB__TOKENS", str(token_file(tmp_path)))
    monkeypatch.setenv("HUDI_INDEX_STATE_FOLDER", str(tmp_path / "state"))
    started = running(PROGRAM, "serve", "--config", tmp_path / "fleet.yaml", "--port", 0)
    started.stdout.readline()
    address = re.search(r"http://\S+", started.stdout.readline())
    assert address is not None
    return {"spark.sql.extensions": EXTENSIONS, ADDRESS: address[0], TOKEN: SECRETS[Role.READ]}


def test_releases_that_follow_each_other_serve_one_fleet(
    spark: SparkSession,
    tmp_path: Path,
    earliest_jar: Path,
    earlier_service: Path,
    service: dict[str, str],
) -> None:
    table = tmp_path / "lake" / "orders"
    options = hudi_options("orders", partition_column="dt")
    write(numbered_rows(spark, 0, ROWS), table, options, "bulk_insert")
    works = [tmp_path / "the earliest jar", tmp_path / "today's jar"]
    sessions = [settings_file(service, tmp_path / "session"), earlier_service]
    with ExitStack() as stack:
        servers: list[Statement] = []
        for work, settings, jar in zip(works, sessions, (earliest_jar, JAR), strict=True):
            work.mkdir()
            servers.append(stack.enter_context(thrift_server(settings, work, jar)))
            servers[-1](f"CREATE TABLE orders USING hudi LOCATION '{table}'")

        def ask(*statements: str) -> list[list[str]]:
            text = "; ".join(("REFRESH TABLE orders", *statements))
            with ThreadPoolExecutor(len(servers)) as threads:
                return list(threads.map(lambda each: each(text), servers))

        for commit in range(1, COMMITS + 1):
            write(numbered_rows(spark, ROWS - 10, ROWS + commit, version=commit), table, options)
            if commit % 3 == 0:
                run_clustering(spark, table)
            queries = [each.format(last=ROWS + commit - 1, first=commit) for each in QUERIES]
            expected = rows_by_spark(spark, table, queries)
            assert [sorted(rows) for rows in ask(*queries)] == [expected, expected]

        ended = awaited(lambda: covered_after(service))
        assert sum(each["built"] > 0 for each in ended) > 1, "nothing was built meanwhile"
        for plan in ask(f"EXPLAIN {queries[0]}"):
            assert "HudiIndexScan index by_id" in "".join(plan)
    for work in works:
        assert "INDEX_NOT" not in (work / "server").read_text()


def covered_after(service: dict[str, str]) -> list[dict[str, Any]]:
    """The last builds, once all is built; none before."""
    headers = {"Authorization": f"Bearer {service[TOKEN]}"}
    url = f"{service[ADDRESS]}/api/v1/tables/lake.orders"
    found = httpx.get(url, headers=headers).json()
    builds: list[dict[str, Any]] = found["ended"]
    return builds if found["coverage"] == 1 and found["due"] == 0 else []


def rows_by_spark(spark: SparkSession, table: Path, queries: list[str]) -> list[str]:
    """The rows of the queries by Spark's own scan, as beeline prints them, sorted."""
    spark.read.format("hudi").load(str(table)).createOrReplaceTempView("orders")
    rows = [row for each in queries for row in spark.sql(each).collect()]
    return sorted("\t".join(map(str, row)) for row in rows)
