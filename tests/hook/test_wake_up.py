"""What a wake-up asks of the table's store."""

from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest

from hudi_index_service.hook.table_upkeep import TableUpkeep
from hudi_index_service.index.metadata.definitions import DEFINITIONS_FOLDER
from hudi_index_service.storage.store import Storage
from tests.golden.table import Golden


def test_a_wake_up_lists_the_definitions_once_for_its_keys(
    golden: Golden, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = golden("archived_keys").put(tmp_path / "t", "keys")
    listings: list[str] = []
    listed = Storage.files

    def files(storage: Storage, folder: str, *arguments: Any) -> Iterable[Any]:
        listings.append(folder)
        return listed(storage, folder, *arguments)

    def listings_of(work: Any) -> int:
        before = listings.count(DEFINITIONS_FOLDER)
        work()
        return listings.count(DEFINITIONS_FOLDER) - before

    with TableUpkeep(path) as upkeep:
        upkeep.run()
        monkeypatch.setattr(Storage, "files", files)
        # Is the table another one? What is defined?
        assert listings_of(upkeep.define) == 2
        # What is required?
        assert listings_of(upkeep.table.build) == 1
