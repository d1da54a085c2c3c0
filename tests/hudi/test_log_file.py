"""Log file blocks: found at their positions, and nothing else is taken for one."""

import random
import struct

import pytest

from hudi_index_service.errors import NeedsSpark
from hudi_index_service.hudi.files.log_file import BlockType, HeaderKey, LogFile, read_log_file
from hudi_index_service.storage.store import Storage
from tests.example_counts import share
from tests.hudi.log_blocks import block

DATA = block(
    BlockType.AVRO_DATA,
    b"some records",
    {HeaderKey.INSTANT_TIME: b"20260101000000000", HeaderKey.SCHEMA: b"{}"},
)
DELETE = block(BlockType.DELETE, b"some keys", {HeaderKey.INSTANT_TIME: b"20260102000000000"})
ROLLBACK = block(
    BlockType.COMMAND,
    header={
        HeaderKey.TARGET_INSTANT_TIME: b"20260102000000000",
        HeaderKey.COMMAND_BLOCK_TYPE: b"0",
    },
)
FILE = DATA + DELETE + ROLLBACK


@pytest.fixture
def read(tmp_path):
    """Reads bytes as a log file."""
    storage = Storage(tmp_path)

    def read_bytes(data: bytes) -> LogFile:
        (tmp_path / "log").write_bytes(data)
        return read_log_file(storage, "log", len(data))

    return read_bytes


def test_blocks_are_read_with_their_headers(read):
    found = read(FILE)
    assert [each.type for each in found.blocks] == [
        BlockType.AVRO_DATA,
        BlockType.DELETE,
        BlockType.COMMAND,
    ]
    data, delete, rollback = found.blocks
    assert data.header[HeaderKey.INSTANT_TIME] == b"20260101000000000"
    assert FILE[data.content.start : data.content.stop] == b"some records"
    assert FILE[delete.content.start : delete.content.stop] == b"some keys"
    assert rollback.header[HeaderKey.TARGET_INSTANT_TIME] == b"20260102000000000"
    assert (data.start, data.end, delete.end, rollback.end) == (
        0,
        len(DATA),
        len(DATA + DELETE),
        len(FILE),
    )


def test_empty_file_has_no_blocks(read):
    assert read(b"") == LogFile("log", ())


def test_headers_and_footers_may_have_unknown_keys(read):
    odd = block(
        BlockType.PARQUET_DATA, b"PAR1", {77: b"", 5: b"\0" * 70_000}, {3: b"of the footer"}
    )
    (found, _) = read(odd + DATA).blocks
    assert found.header[5] == b"\0" * 70_000


@pytest.mark.parametrize("cut", range(1, len(DELETE)))
def test_file_truncated_within_a_block(read, cut):
    if 6 <= cut < 14:
        with pytest.raises(NeedsSpark, match=f"Log file log is damaged at byte {len(DATA)}"):
            read(DATA + DELETE[:cut])
    else:
        (whole,) = read(DATA + DELETE[:cut]).blocks
        assert (whole.start, whole.end) == (0, len(DATA))


@pytest.mark.parametrize(
    ("data", "what"),
    [
        (DATA + b"\0" * 6 + DELETE, "no block begins there"),
        (b"\0" + DATA, "no block begins there"),
        (DATA[:40] + DELETE, "longer than its block"),
        (block(BlockType.AVRO_DATA, b"x" * 200_000)[:150_000] + DELETE[:6], "followed by another"),
        (b"#HUDI#" + struct.pack(">Q", 31) + b"\0" * 40, "a block of 31 bytes"),
        (b"#HUDI#" + b"\xff" * 40, "a block of 18446744073709551615 bytes"),
        (DATA[:14] + struct.pack(">I", 2) + DATA[18:], "version 2"),
        (DATA[:18] + struct.pack(">I", 7) + DATA[22:], "type 7"),
        (DATA[:22] + b"\xff" * 4 + DATA[26:], "longer than its block"),
        (DATA[:-12] + b"\xff" * 4 + DATA[-8:], "longer than its block"),
        (DATA[:-1] + b"\0", "lengths disagree"),
    ],
)
def test_malformed_log_file_is_left_to_spark(read, data, what):
    with pytest.raises(NeedsSpark, match=what):
        read(data)


def test_damaged_bytes_give_blocks_or_an_error(read):
    """Whichever byte is changed, the result is blocks within the file or an error."""
    choice = random.Random(1)
    for _ in range(share(2000)):
        data = bytearray(FILE)
        for _ in range(choice.randint(1, 3)):
            data[choice.randrange(len(data))] = choice.choice([0, 1, 0x7F, 0xFF])
        try:
            found = read(bytes(data))
        except NeedsSpark:
            continue
        assert all(each.end <= len(data) for each in found.blocks)


def test_block_contents_are_not_read():
    storage = Storage("memory://contents_are_not_read")
    storage.create("log", block(BlockType.AVRO_DATA, b"x" * 3_000_000) * 3)
    size = storage.size("log")
    before = (storage.io.requests, storage.io.bytes_read)
    assert len(read_log_file(storage, "log", size).blocks) == 3
    assert storage.io.requests - before[0] == 4
    assert storage.io.bytes_read - before[1] < 4 * 2**16
