"""Which manifest a build finds for a base file, and which layouts this release reads."""

import uuid

import pytest

from hudi_index_service.index.contract import IndexType
from hudi_index_service.index.factory import index_type
from hudi_index_service.index.metadata.documents import NewerFormat
from hudi_index_service.index.metadata.entry import EntryListing, present_manifest
from hudi_index_service.index.metadata.manifest import Layout, Manifest
from hudi_index_service.storage.store import Storage
from tests.index.test_summaries import base_file, manifest_of, publish

FILE = base_file(1)


class Lucene(type(index_type("lucene"))):  # type: ignore[misc]
    """The index type as if it read the layouts 2 and 3."""

    version, oldest = 3, 2


KIND: IndexType = Lucene()


def of_version(version: int) -> Manifest:
    return manifest_of(FILE).model_copy(update={"index_type_version": version})


def found(*manifests: Manifest, damaged: int = 0) -> Manifest | None:
    storage = Storage(f"memory://{uuid.uuid4().hex}")
    for each in manifests:
        publish(storage, FILE, each)
    return present_manifest(EntryListing(storage, "lucene"), FILE, KIND, damaged=damaged)


@pytest.mark.parametrize(
    ("version", "layout"), [(1, Layout.OLDER), (2, Layout.READ), (3, Layout.READ)]
)
def test_a_build_finds_an_entry_that_it_may_replace(version: int, layout: Layout) -> None:
    assert of_version(version).layout(KIND) is layout
    assert found(of_version(version)) == of_version(version)


def test_a_build_does_not_replace_the_entry_of_a_newer_release() -> None:
    assert of_version(4).layout(KIND) is Layout.NEWER
    with pytest.raises(NewerFormat, match="version 4; this release writes version 3"):
        found(of_version(4))


def test_missing_damaged_and_foreign_entries_count_as_none() -> None:
    assert found() is None
    assert found(of_version(3), damaged=1) is None
    assert found(manifest_of(base_file(2)).model_copy(update={"index_type_version": 3})) is None
    second = of_version(3).model_copy(update={"generation": 2})
    assert found(of_version(3), second, damaged=1) == second
