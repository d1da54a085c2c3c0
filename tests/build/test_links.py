"""Symbolic links below ``.hoodie/.index``: a user who may write that folder must not be able to
make builders, cleaners and changes of definitions write or delete anywhere else."""

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from hudi_index_service import IndexedTable
from hudi_index_service.errors import BuildFailed, IndexServiceError, StorageFailed
from tests.build.entries import data_files

INDEX = ".hoodie/.index"

OPERATIONS: dict[str, Callable[[IndexedTable], object]] = {
    "create": lambda table: table.create_index("more", ["id"]),
    "build": lambda table: table.build(strategy="all").raise_for_failures(),
    "alter": lambda table: table.alter_index("early", add=["ts"]),
    "refresh": lambda table: table.refresh("early").raise_for_failures(),
    "cancel": lambda table: table.cancel(),
    "repair": lambda table: table.verify(repair=True),
    "clean": lambda table: table.clean(grace_seconds=0),
    "drop": lambda table: table.drop_index("early"),
    "purge": lambda table: table.drop_index("early", purge=True),
}


def content(folder: Path) -> dict[str, bytes | None]:
    """Everything in a folder: path → bytes, None for folders."""
    return {
        str(path.relative_to(folder)): path.read_bytes() if path.is_file() else None
        for path in folder.rglob("*")
    }


@pytest.mark.parametrize(
    "link", ["", "_service", "_service/definitions", "_service/builds", "lucene", "lucene/*"]
)
def test_nothing_is_written_or_deleted_through_a_link(
    cow: IndexedTable, tmp_path: Path, link: str
) -> None:
    assert len(cow.build(strategy="all").built) == 2
    (link_path, *_) = sorted(Path(cow.uri, INDEX).glob(link)) if link else [Path(cow.uri, INDEX)]
    target = tmp_path / "elsewhere"
    shutil.move(link_path, target)
    link_path.symlink_to(target)
    before = content(target)

    for name, operation in OPERATIONS.items():
        try:
            operation(cow)
        except IndexServiceError as error:
            assert "is a symbolic link" in str(error), name  # noqa: PT017 - others succeed
        assert content(target) == before, name
    assert link_path.is_symlink()


def test_the_error_names_the_link_and_its_path(cow: IndexedTable, tmp_path: Path) -> None:
    target = tmp_path / "elsewhere"
    target.mkdir()
    Path(cow.uri, INDEX, "lucene").symlink_to(target)

    with pytest.raises(BuildFailed, match=rf"{cow.uri}/{INDEX}/lucene is a symbolic link\."):
        cow.build(strategy="all").raise_for_failures()
    assert cow.scan("amount = 3").count() == 1
    assert data_files(cow.uri) == []
    assert list(target.iterdir()) == []

    shutil.move(Path(cow.uri, INDEX), tmp_path / "index")
    Path(cow.uri, INDEX).symlink_to(tmp_path / "index")
    with pytest.raises(StorageFailed, match=rf"{cow.uri}/{INDEX} is a symbolic link\.") as refused:
        cow.create_index("more", ["id"])
    assert "Remove the link" in refused.value.remedy
