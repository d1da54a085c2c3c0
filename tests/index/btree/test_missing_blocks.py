"""Only the blocks with the tree and the needed leaves of a remote data file are fetched."""

from dataclasses import dataclass, field, replace
from pathlib import Path

import pyarrow as pa
import pytest

from hudi_index_service.errors import EntryInvalid
from hudi_index_service.predicate import negation_normal_form, parse_predicate
from hudi_index_service.predicate.expression import Predicate
from tests.index.conftest import BuildIndex, IndexedData

ROWS = 200_000
DATA = pa.table(
    {"n": [(i * 7919) % ROWS for i in range(ROWS)], "s": [f"{i:x}" for i in range(ROWS)]}
)


@dataclass
class Store:
    """Copies blocks from the complete file into one with gaps."""

    whole: Path
    copy: Path
    block_size: int
    number: int = 1
    fetched: set[int] = field(default_factory=set)

    def fetch(self, block: int) -> None:
        self.fetched.add(block)
        with self.whole.open("rb") as source, self.copy.open("r+b") as target:
            source.seek(block * self.block_size)
            target.seek(block * self.block_size)
            target.write(source.read(self.block_size))


@pytest.fixture(scope="module")
def whole(build_btree: BuildIndex) -> IndexedData:
    return build_btree(DATA, batch_rows=50_000)


@pytest.fixture
def gaps(whole: IndexedData, tmp_path: Path) -> tuple[IndexedData, Store]:
    """The same index, with none of its file fetched yet."""
    copy = tmp_path / "copy"
    copy.write_bytes(bytes(whole.index.length))
    store = Store(whole.index.path, copy, whole.index.block_size)
    return replace(whole, index=replace(whole.index, path=copy, blocks=store)), store


def predicate_of(where: str) -> Predicate:
    return negation_normal_form(parse_predicate(where, DATA.schema))


@pytest.mark.parametrize(
    ("where", "blocks"),
    [("n = 17", 2), ("n = 17 AND n > 3", 2), ("s = '2f1'", 2), ("n BETWEEN 5 AND 20000", 6)],
)
def test_a_look_up_fetches_only_the_blocks_it_needs(
    whole: IndexedData, gaps: tuple[IndexedData, Store], where: str, blocks: int
) -> None:
    indexed, store = gaps
    reader = indexed.kind.open(indexed.index, indexed.columns)
    opening = len(store.fetched)
    assert reader.row_ids(predicate_of(where)) == whole.reader.row_ids(predicate_of(where))
    assert opening <= 2
    assert 0 < len(store.fetched) <= opening + blocks < len(whole.index.block_crc32)
    reader.close()


def test_full_range_look_ups_fetch_all_blocks(
    whole: IndexedData, gaps: tuple[IndexedData, Store]
) -> None:
    indexed, store = gaps
    reader = indexed.kind.open(indexed.index, indexed.columns)
    for where in ("n >= 0", "s >= ''"):
        assert reader.row_ids(predicate_of(where)) == whole.reader.row_ids(predicate_of(where))
    assert len(store.fetched) == len(whole.index.block_crc32)
    reader.close()


def test_blocks_damaged_in_the_store_are_refused(
    whole: IndexedData, gaps: tuple[IndexedData, Store], tmp_path: Path
) -> None:
    indexed, store = gaps
    reader = indexed.kind.open(indexed.index, indexed.columns)
    content = bytearray(whole.index.path.read_bytes())
    start, length = whole.index.members["leaves"]
    for at in range(start, start + length, 1000):
        content[at] ^= 1
    store.whole = tmp_path / "damaged"
    store.whole.write_bytes(content)
    with pytest.raises(EntryInvalid, match="damaged"):
        reader.row_ids(predicate_of("n >= 0"))
    reader.close()
