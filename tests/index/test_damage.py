"""A damaged index is refused or answers correctly, wherever the damage is, and never crashes the
process: Lucene reads mapped files, and the row reader leaves, natively.

``python -m tests.index.test_damage <empty folder> <times>`` damages a packed index of several
blocks, in one way at a time, and repeats the same look-ups, in a process of its own, since a
damaged index may crash it. It prints how often the index of each type was refused, and how often
all answers were unchanged."""

import json
import random
import sys
from collections import Counter
from dataclasses import replace
from hashlib import sha256
from pathlib import Path

import pyarrow as pa

from hudi_index_service.errors import EntryInvalid
from hudi_index_service.index.contract import IndexReader
from hudi_index_service.index.factory import index_type
from hudi_index_service.index.packed_file import BLOCK_SIZE
from hudi_index_service.predicate import negation_normal_form, parse_predicate
from tests.example_counts import share
from tests.index.conftest import building
from tests.programs import lines_of

LEAST_BLOCKS = 6
ROWS = range(20_000)
DATA = pa.table(
    {
        "n": pa.array([None if i % 50 == 0 else (i * 7919) % 10_007 for i in ROWS]),
        "s": [f"text {i % 3000} {'x' * (i % 40)}" for i in ROWS],
        "h": [sha256(b"%d" % i).hexdigest() for i in ROWS],
        "f": ["abc"[i % 3] for i in ROWS],
        "a": pa.array([[f"t{i % 5}", None][: i % 3] for i in ROWS], pa.list_(pa.string())),
    }
)
WHERE = (
    "n = 12",
    "n < 5000",
    "n IS NULL",
    "s LIKE 'text 12%'",
    "s IN ('text 5 xxxxx', 'none')",
    "s > 'text 2'",
    "h BETWEEN '4' AND '80'",
    "h LIKE '0123%'",
    "f <> 'a'",
    "array_contains(a, 't3')",
)
LEAVES = [negation_normal_form(parse_predicate(where, DATA.schema)) for where in WHERE]


def answers(reader: IndexReader) -> list[object]:
    """The row ids of each leaf, or "refused"."""
    found: list[object] = []
    for leaf in LEAVES:
        try:
            found.append(reader.row_ids(leaf))
        except EntryInvalid:
            found.append("refused")
    return found


def damaged(whole: bytes, choose: random.Random) -> bytes:
    """The bytes with a flipped bit, or damaged as a disk or a file system might: a page or a block
    of zeros, zeros to the end, a block in the place of another."""
    content = bytearray(whole)
    at = choose.randrange(len(whole))
    page, block = at - at % 4096, at - at % BLOCK_SIZE
    match choose.randrange(8):
        case 0:
            end = min(page + 4096, len(whole))
            content[page:end] = bytes(end - page)
        case 1:
            end = min(block + BLOCK_SIZE, len(whole))
            content[block:end] = bytes(end - block)
        case 2:
            content[at:] = bytes(len(whole) - at)
        case 3:
            other = choose.randrange(len(whole) // BLOCK_SIZE) * BLOCK_SIZE
            end = min(block + BLOCK_SIZE, len(whole))
            content[block:end] = whole[other : other + end - block]
        case _:
            content[at] ^= 1 << choose.randrange(8)
    return bytes(content)


def main(name: str, folder: Path, times: int) -> None:
    """Fails if an answer differs from that of the undamaged index."""
    kind = index_type(name)
    folder.mkdir()
    indexed = building(kind, folder)(DATA, batch_rows=2_000)
    expected = answers(indexed.reader)
    whole = indexed.index.path.read_bytes()
    choose, outcomes = random.Random(5), Counter[str]()
    assert len(indexed.index.block_crc32) >= LEAST_BLOCKS, len(indexed.index.block_crc32)
    for number in range(times):
        index = replace(indexed.index, path=folder / f"damaged-{number}")
        index.path.write_bytes(damaged(whole, choose))
        try:
            reader = kind.open(index, indexed.columns)
        except EntryInvalid:
            outcomes["refused"] += 1
            continue
        found = answers(reader)
        reader.close()
        index.path.unlink()
        assert all(a in ("refused", b) for a, b in zip(found, expected, strict=True)), number
        outcomes["refused" if "refused" in found else "answered"] += 1
    print(json.dumps({"type": name, **outcomes}))


def test_damage_is_refused_or_harmless(tmp_path: Path) -> None:
    times = share(300)
    lines = lines_of("tests.index.test_damage", tmp_path, times, module=True)
    for name, line in zip(("btree", "lucene"), lines[-2:], strict=True):
        outcomes = json.loads(line)
        assert outcomes.pop("type") == name
        assert sum(outcomes.values()) == times
        assert outcomes["refused"] > times // 3


if __name__ == "__main__":
    for name in ("btree", "lucene"):
        main(name, Path(sys.argv[1], name), int(sys.argv[2]))
