"""Row keys: an entry's leaves are one ordered range, and entries are spread over the table."""

from collections import Counter

from hypothesis import given
from hypothesis import strategies as st

from hudi_index_hbase.store import (
    CHUNK_BYTES,
    EntryKeys,
    TableKeys,
    chunks,
    joined,
)
from hudi_index_service.index.btree.tree import Branch, LeafPlace, branch_prefix
from tests.example_counts import examples

TABLE = "file:///data/messages"
DATA = ".hoodie/.index/hbase/20260101000000000/abc/0123/data-000001-{:012x}.pack"

branches = st.tuples(st.integers(0, 400), st.sampled_from(Branch), st.binary(max_size=20))
ordered = examples(100)


def leaf_at(column: int, branch: Branch, key: bytes) -> LeafPlace:
    prefix = branch_prefix(column, branch)
    return LeafPlace(key, False, 0, 1, 0, 1, 1, 0, prefix)


@ordered
@given(leaves=st.lists(branches, max_size=30), tables=st.lists(st.text(), min_size=2, max_size=4))
def test_leaves_of_an_entry_are_one_ordered_range(
    leaves: list[tuple[int, Branch, bytes]], tables: list[str]
) -> None:
    path = DATA.format(1)
    keys = EntryKeys.of(TABLE, path)

    rows = [keys.leaf(leaf_at(*leaf)) for leaf in sorted(leaves)]

    assert rows == sorted(rows)
    assert all(keys.prefix <= row < keys.end for row in rows)
    others = [EntryKeys.of(TABLE, DATA.format(2)), *(EntryKeys.of(t, path) for t in tables)]
    for other in others:
        assert not any(other.prefix <= row < other.end for row in rows) or other == keys
    for table in (TABLE, *tables):
        listed = TableKeys.of(table).prefix
        assert not any(row.startswith(listed) for row in rows)


def test_keys_are_stable_per_entry_and_differ_per_generation() -> None:
    one, again, next_one = (EntryKeys.of(TABLE, DATA.format(n)) for n in (1, 1, 2))

    assert one == again
    assert one != next_one
    assert one != EntryKeys.of(f"{TABLE}2", DATA.format(1))
    # The pair of names matters, not their concatenation.
    assert EntryKeys.of("a", "b/c") != EntryKeys.of("a/b", "c")


def test_entries_are_spread_over_the_table() -> None:
    """Of a thousand entries written in sequence, as by one build, each of sixteen regions of equal
    size gets its share."""
    regions = Counter(EntryKeys.of(TABLE, DATA.format(n)).prefix[0] // 16 for n in range(1_000))

    assert len(regions) == 16
    assert max(regions.values()) < 2.5 * min(regions.values())


@ordered
@given(path=st.text(max_size=60), table=st.text(max_size=60))
def test_catalog_keys_contain_the_path(path: str, table: str) -> None:
    keys = TableKeys.of(table)
    assert keys.path(keys.entry(path)) == path


def test_large_leaves_are_split_into_cells() -> None:
    for size in (0, 1, CHUNK_BYTES, CHUNK_BYTES + 1, 300 * CHUNK_BYTES):
        body = bytes(1) * (size // 2) + b"\xff" * (size - size // 2)
        cells = chunks(body)
        assert joined(dict(reversed(cells.items()))) == body
        assert max(map(len, cells.values())) <= CHUNK_BYTES
        assert len(cells) == max(1, -(-size // CHUNK_BYTES))
