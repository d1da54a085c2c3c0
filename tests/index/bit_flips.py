"""Flips bits of a packed index, one at a time, and asks it each time what it was asked before:
``python -m tests.index.bit_flips <index type> <empty folder>``, a process that a damaged index may
end only itself. Prints how often the index was refused, and how often it answered all the same."""

import json
import random
import sys
from collections import Counter
from dataclasses import replace
from pathlib import Path

import pyarrow as pa

from hudi_index_service.errors import EntryInvalid
from hudi_index_service.index.contract import IndexReader
from hudi_index_service.index.factory import index_type
from hudi_index_service.predicate import negation_normal_form, parse_predicate
from tests.index.conftest import building

FLIPS = 150
ROWS = range(6_000)
DATA = pa.table(
    {
        "n": pa.array([None if i % 50 == 0 else (i * 7919) % 10_007 for i in ROWS]),
        "s": [f"text {i % 3000} {'x' * (i % 40)}" for i in ROWS],
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
    "f <> 'a'",
    "array_contains(a, 't3')",
)
LEAVES = [negation_normal_form(parse_predicate(where, DATA.schema)) for where in WHERE]


def answers(reader: IndexReader) -> list[object]:
    """The rows, or that they were refused."""
    found: list[object] = []
    for leaf in LEAVES:
        try:
            found.append(reader.row_ids(leaf))
        except EntryInvalid:
            found.append("refused")
    return found


def main(name: str, folder: Path) -> None:
    """Fails if any answer is another than that of the index as it was built."""
    kind = index_type(name)
    indexed = building(kind, folder)(DATA, batch_rows=2_000)
    expected = answers(indexed.reader)
    whole = indexed.index.path.read_bytes()
    choose, outcomes = random.Random(5), Counter[str]()
    for number in range(FLIPS):
        content = bytearray(whole)
        content[choose.randrange(len(whole))] ^= 1 << choose.randrange(8)
        damaged = replace(indexed.index, path=folder / f"damaged-{number}")
        damaged.path.write_bytes(content)
        try:
            reader = kind.open(damaged, indexed.columns)
        except EntryInvalid:
            outcomes["refused"] += 1
            continue
        found = answers(reader)
        reader.close()
        assert all(a in ("refused", b) for a, b in zip(found, expected, strict=True)), number
        outcomes["refused" if "refused" in found else "answered"] += 1
    print(json.dumps(outcomes))


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]))
