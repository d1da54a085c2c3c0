"""A real table after Hudi's cleaning and archiving; every test works on a copy."""

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from hudi_index_service import IndexedTable, open_table
from hudi_index_service.config import CleanSettings, Settings
from tests.golden.table import Golden
from tests.indexed import GoldenIndex


@pytest.fixture(scope="session")
def written(
    golden: Golden, golden_index: GoldenIndex, tmp_path_factory: pytest.TempPathFactory
) -> dict[str, Path]:
    """Two states of one table, each with the index ``early`` on msg.

    fresh: Clustered, every base file indexed.
    cleaned: After several upserts to the odd ids' partition: Hudi has cleaned the indexed base
        files there, and archived the instants of the first writes. The even ids' base file from
        the clustering still exists.
    """
    fresh = golden_index("cleaned_and_archived", ["msg"], name="early", step="clustered")
    cleaned = shutil.copytree(fresh, tmp_path_factory.mktemp("cleaned") / "table")
    return {"fresh": fresh, "cleaned": golden("cleaned_and_archived").put(cleaned)}


Open = Callable[..., IndexedTable]


@pytest.fixture
def open_copy(written: dict[str, Path], tmp_path: Path) -> Open:
    """Opens a copy of a state of the table with the given clean settings; with the summary that its
    build wrote if `summary` is set."""

    def open_state(state: str, *, summary: bool = False, **settings: object) -> IndexedTable:
        copy = tmp_path / state
        if not copy.exists():
            shutil.copytree(written[state], copy)
            if not summary:
                shutil.rmtree(copy / ".hoodie/.index/_service/instants")
        return open_table(
            copy,
            settings=Settings(
                cache_folder=tmp_path / "cache",
                clean=CleanSettings(**settings),  # type: ignore[arg-type]
            ),
        )

    return open_state
