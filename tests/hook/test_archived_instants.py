"""Archived instants are known to have existed; instants that never existed are not."""

from pathlib import Path

import pytest

from hudi_index_service import open_table
from tests.golden.recipes.archived import ANOTHER
from tests.golden.table import Golden


@pytest.mark.parametrize("name", ["archived_in_version_6", "archived"])
def test_an_archived_instant_is_known(golden: Golden, tmp_path: Path, name: str) -> None:
    history = golden(name)
    path = history.put(tmp_path, "one commit")
    with open_table(path) as table:
        (first,) = table.hudi_table.completed_instants()
        assert table.hudi_table.ever_completed(first.requested)
        history.put(path, "two commits")
        _, second = table.hudi_table.completed_instants()
        history.put(path, "archived")
        assert first not in table.hudi_table.completed_instants()
        assert table.hudi_table.ever_completed(first.requested)
        assert not table.hudi_table.ever_completed(ANOTHER)
        # Between the two writes, which are more than a millisecond apart.
        assert not table.hudi_table.ever_completed(str(int(second.requested) - 1))
