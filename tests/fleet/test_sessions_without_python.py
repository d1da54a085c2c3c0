"""A Spark session without Python reads the tables of a fleet by its service, as its token may."""

import re
import signal
from pathlib import Path

import httpx
import pytest

from hudi_index_service.fleet.forms.answer import ADDRESS, EXTENSIONS, TOKEN
from hudi_index_service.fleet.web.access import digest_of
from tests.fleet.served import FILE_START, PROGRAM
from tests.golden.table import Golden
from tests.programs import Running, awaited
from tests.spark_rule.without_python import settings_file, thrift_server

pytestmark = pytest.mark.slow

FILE = (
    FILE_START
    + """\
groups:
- name: shop
  include: ["{lake}/*"]
"""
)
ALL, ORDERS = "the-token-of-all-tables", "the-token-of-orders"
TOKENS = f"all read {digest_of(ALL)}\norders read {digest_of(ORDERS)} lake.orders\n"
QUERIES = (
    "SELECT {} id, city, amount, text FROM {} WHERE id = '7'",
    "SELECT {} id, part FROM {} WHERE id IN ('3', '50', '19999') ORDER BY amount",
    "SELECT {} count(*), sum(amount) FROM {} WHERE id LIKE '1999%'",
)


def test_a_session_without_python_reads_what_its_token_may(
    golden: Golden, tmp_path: Path, running: Running, monkeypatch: pytest.MonkeyPatch
) -> None:
    lake = tmp_path / "lake"
    for name in ("orders", "returns"):
        golden("zips_in_two_partitions").put(lake / name)
    (tmp_path / "fleet.yaml").write_text(FILE.format(lake=lake))
    (tmp_path / "tokens").write_text(TOKENS)
    (tmp_path / "tokens").chmod(0o600)
    monkeypatch.setenv("HUDI_INDEX_WEB__TOKENS", str(tmp_path / "tokens"))
    monkeypatch.setenv("HUDI_INDEX_STATE_FOLDER", str(tmp_path / "state"))
    service = running(PROGRAM, "serve", "--config", tmp_path / "fleet.yaml", "--port", 0)
    service.stdout.readline()
    address = re.search(r"http://\S+", service.stdout.readline())
    assert address is not None

    def is_built() -> bool:
        headers = {"Authorization": f"Bearer {ALL}"}
        found = httpx.get(f"{address[0]}/api/v1/tables", headers=headers).json()["tables"]
        return [each["coverage"] for each in found] == [1, 1]

    awaited(is_built, 60, 0.05)
    settings = {"spark.sql.extensions": EXTENSIONS, ADDRESS: address[0], TOKEN: ORDERS}
    with thrift_server(settings_file(settings, tmp_path / "session"), tmp_path) as statement:
        for name in ("orders", "returns"):
            statement(f"CREATE TABLE {name} USING hudi LOCATION '{lake / name}'")

        def rows(table: str, hint: str = "") -> list[str]:
            return statement("; ".join(each.format(hint, table) for each in QUERIES))

        def plan(table: str) -> str:
            return "".join(statement(f"EXPLAIN {QUERIES[0].format('', table)}"))

        assert "HudiIndexScan index by_id, by driver" in plan("orders")
        assert "HudiIndexScan" not in plan("returns")
        with pytest.raises(AssertionError, match="The token orders is not for this table"):
            statement(f"EXPLAIN INDEX {QUERIES[0].format('', 'returns')}")  # which says why
        expected = rows("orders", "/*+ NO_INDEX */")
        assert len(expected) == 5
        assert rows("orders") == rows("returns") == expected
        log = tmp_path / "server"
        assert "INDEX_NOT" not in log.read_text()

        service.send_signal(signal.SIGTERM)
        assert service.wait(60) == 0
        assert rows("orders") == rows("returns") == expected
        warnings = [each for each in log.read_text().splitlines() if "INDEX_NOT" in each]
        answering = "INDEX_NOT_ANSWERING: Spark scans"
        # A decision that the session still has is followed by a read, which fails as well.
        told = (answering, f"INDEX_NOT_READ: Spark scans file:{lake}/orders")
        assert sum(answering in each for each in warnings) == 1
        assert all(any(each in line for each in told) for line in warnings)
        assert ORDERS not in log.read_text()
