"""HDFS with Kerberos: a real KDC, and data nodes that check their clients."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from dev.hdfs import KERBEROS, Hdfs, running_hdfs
from hudi_index_service import open_table
from hudi_index_service.config import Settings
from hudi_index_service.errors import PermissionDenied, StorageFailed
from hudi_index_service.storage.store import Storage
from tests.golden.table import Golden
from tests.hdfs.conftest import mirror
from tests.indexed import indexed
from tests.same_rows import assert_same_rows

pytestmark = pytest.mark.slow

ADMIN = "hdfs/localhost"
FEW_ATTEMPTS = {"dfs.client.failover.max.attempts": "1"}


@pytest.fixture(scope="module")
def secure(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Hdfs]:
    """An HDFS with Kerberos."""
    with running_hdfs(tmp_path_factory.mktemp("secure"), KERBEROS) as running:
        yield running


@pytest.fixture(autouse=True)
def _no_ticket(secure: Hdfs, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KRB5_CONFIG", secure.krb5_conf)
    monkeypatch.setenv("KRB5CCNAME", f"FILE:{tmp_path / 'no-ticket'}")


def test_table_is_read_and_indexed_with_a_keytab(
    secure: Hdfs, golden: Golden, settings: Settings, tmp_path: Path
) -> None:
    options = secure.credentials(ADMIN)
    storage = Storage(f"{secure.uri}/tables/t", options)
    mirror(golden("version_9").put(tmp_path / "local"), storage)
    table = indexed(
        storage.uri, ["amount"], name="by_amount", storage_options=options, settings=settings
    )
    expected = golden("version_9").answer("amount = 12")
    assert_same_rows(table.scan("amount = 12").to_arrow(), expected)

    client = secure.credentials("client")
    reading = open_table(storage.uri, storage_options=client, settings=settings)
    assert_same_rows(reading.scan("amount = 12").to_arrow(), expected)
    with pytest.raises(PermissionDenied, match="Permission denied: user=client"):
        reading.create_index("another", ["msg"])


def test_missing_credentials_are_reported(secure: Hdfs) -> None:
    for options in ({}, KERBEROS, {**secure.credentials("client"), "kerberos_keytab": "/absent"}):
        with pytest.raises(StorageFailed) as refused:
            Storage(f"{secure.uri}/t", {**options, **FEW_ATTEMPTS}).files()
        assert "kinit" in refused.value.remedy
        assert "\n" not in str(refused.value)
