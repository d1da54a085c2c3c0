"""Record keys of log file blocks, and what is refused rather than guessed."""

import base64
import io
import json
import random
import struct

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyroaring import BitMap64

from hudi_index_service.errors import NeedsSpark
from hudi_index_service.hudi.files.log_file import (
    BlockType,
    HeaderKey,
    LogKeysUnknown,
    parse_log_file,
    record_keys,
)
from tests.hudi.log_blocks import block

FIELDS = ["_hoodie_commit_time", "_hoodie_commit_seqno", "_hoodie_record_key"]
SCHEMA = json.dumps(
    {"fields": [{"name": name, "type": ["null", "string"]} for name in [*FIELDS, "amount"]]}
).encode()
INSTANT = b"20260101000000000"


def number(value: int) -> bytes:
    """A number in Avro's encoding."""
    value = 2 * value if value >= 0 else -2 * value - 1
    encoded = b""
    while value >= 0x80:
        encoded += bytes([value & 0x7F | 0x80])
        value >>= 7
    return encoded + bytes([value])


def text(value: str | None) -> bytes:
    """A text that may be NULL."""
    data = b"" if value is None else value.encode()
    return number(0) if value is None else number(1) + number(len(data)) + data


def data_block(*keys, schema=SCHEMA, version=3, **header):
    """A block of records with these keys."""
    records = [text("1") + text(None) + text(key) + b"whatever follows" for key in keys]
    sized = b"".join(struct.pack(">I", len(each)) + each for each in records)
    content = struct.pack(">II", version, len(records)) + sized
    headers = {HeaderKey[name]: value for name, value in header.items()}
    return block(BlockType.AVRO_DATA, content, {HeaderKey.SCHEMA: schema, **headers})


def delete_block(*records, version=3):
    """A block of deleted records: key and encoded ordering value."""
    items = b"".join(text(key) + text("a partition") + ordering for key, ordering in records)
    listed = number(len(records)) + items + number(0)
    return block(BlockType.DELETE, struct.pack(">II", version, len(listed)) + listed)


def parquet_block(rows):
    sink = io.BytesIO()
    pq.write_table(pa.table(rows), sink)
    return block(BlockType.PARQUET_DATA, sink.getvalue())


ROLLBACK = block(BlockType.COMMAND, header={HeaderKey.COMMAND_BLOCK_TYPE: b"0"})


def read(data):
    """The record keys of the blocks in a log file."""
    return record_keys(parse_log_file("log", data), data)


ORDERINGS = [
    number(0),  # NULL
    number(1) + struct.pack("<i", 5)[:1],  # a boolean
    number(2) + number(-70_000),
    number(3) + number(2**40),
    number(4) + struct.pack("<f", 1.5),
    number(5) + struct.pack("<d", 1.5),
    number(6) + number(3) + b"\0\1\2",
    number(7) + number(2) + b"ab",
    number(8) + number(1),
    number(9) + number(2) + b"\0\1",
    number(10) + number(1),
    number(11) + number(1),
]


def test_keys_of_all_blocks_are_read_in_order():
    found = read(
        data_block("b", "a", "ü", "x" * 200)
        + ROLLBACK
        + delete_block(*((f"d{place}", each) for place, each in enumerate(ORDERINGS)))
        + parquet_block({"_hoodie_record_key": ["p", "q"], "amount": [1, 2]})
    )
    assert [each.keys for each in found] == [
        [b"b", b"a", "ü".encode(), b"x" * 200],
        [f"d{place}".encode() for place in range(len(ORDERINGS))],
        [b"p", b"q"],
    ]
    assert all(each.rows is None for each in found)


def test_rows_of_the_base_file_are_those_of_the_keys_in_order():
    encoded = base64.b64encode(BitMap64([3, 7, 2**33]).serialize())
    known = {
        "RECORD_POSITIONS": encoded,
        "BASE_FILE_INSTANT_TIME_OF_RECORD_POSITIONS": INSTANT,
    }
    (found,) = read(data_block("c", "a", "b", **known))
    assert (found.keys, found.rows) == ([b"c", b"a", b"b"], [3, 7, 2**33])
    assert found.instant == INSTANT.decode()


@pytest.mark.parametrize(
    "header",
    [
        {"RECORD_POSITIONS": base64.b64encode(BitMap64([3, 7]).serialize())},  # of which file?
        {
            "RECORD_POSITIONS": base64.b64encode(BitMap64([3]).serialize()),  # one is missing
            "BASE_FILE_INSTANT_TIME_OF_RECORD_POSITIONS": INSTANT,
        },
        {
            "RECORD_POSITIONS": b"no bitmap",
            "BASE_FILE_INSTANT_TIME_OF_RECORD_POSITIONS": INSTANT,
        },
    ],
)
def test_rows_are_unknown_unless_each_key_has_one(header):
    (found,) = read(data_block("a", "b", **header))
    assert found.keys == [b"a", b"b"]
    assert found.rows is None


OTHER_ORDER = json.dumps(
    {"fields": [{"name": name, "type": ["null", "string"]} for name in reversed(FIELDS)]}
).encode()


@pytest.mark.parametrize(
    ("data", "why"),
    [
        (data_block("a", schema=OTHER_ORDER), "third field is not their key"),
        (data_block("a", schema=b"{}"), "without a schema of records"),
        (data_block("a", schema=b"?"), "without a schema of records"),
        (data_block("a", version=2), "records of version 2"),
        (data_block(None), "a record without a key"),
        (data_block("a", IS_PARTIAL=b"true"), "partial updates"),
        (delete_block(("a", number(12))), "cannot be read"),
        (delete_block(("a", number(0)), version=2), "deleted records of version 2"),
        (delete_block((None, number(0))), "a record without a key"),
        (parquet_block({"id": ["a"]}), "a Parquet block without record keys"),
        (parquet_block({"_hoodie_record_key": [None, "a"]}), "a record without a key"),
        (block(BlockType.AVRO_DATA, b"\0\0\0", {HeaderKey.SCHEMA: SCHEMA}), "cannot be read"),
        (block(BlockType.HFILE_DATA, b"?"), "HFILE_DATA"),
    ],
)
def test_other_layouts_are_refused_with_their_place(data, why):
    with pytest.raises(LogKeysUnknown, match=rf"log at byte {len(ROLLBACK)}: .*{why}"):
        read(ROLLBACK + data)


def test_damaged_blocks_are_refused_or_read():
    """Never another error; whoever merges the file meets the damage, too."""
    dice = random.Random(7)
    whole = data_block("abc", "d") + delete_block(("e", ORDERINGS[2]), ("f", ORDERINGS[7]))
    refused = 0
    for _ in range(500):
        data = bytearray(whole)
        for _ in range(dice.randrange(1, 4)):
            data[dice.randrange(len(data))] = dice.randrange(256)
        try:
            read(bytes(data))
        except (LogKeysUnknown, NeedsSpark):
            refused += 1
    assert refused > 100
