"""Names of files in a partition."""

import pytest

from hudi_index_service.hudi.snapshot import (
    BaseFileName,
    LogFileName,
    OtherFile,
    parse_file_name,
)

FILE_ID = "64852660-6fa6-4253-bed1-97dc5257745e-0"


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        (
            f"{FILE_ID}_0-45-90_20261121034150789.parquet",
            BaseFileName(FILE_ID, "20261121034150789"),
        ),
        ("4c8e8448_0-724-1288_00000000000001.parquet", BaseFileName("4c8e8448", "00000000000001")),
        (f".{FILE_ID}_20261121.log.1_1-189-328", LogFileName(FILE_ID, "20261121", 1, False)),
        (f".{FILE_ID}_20261121.log.12", LogFileName(FILE_ID, "20261121", 12, False)),
        (f".{FILE_ID}_20261121.log.1_0-421-790.cdc", LogFileName(FILE_ID, "20261121", 1, True)),
        (".hoodie_partition_metadata", OtherFile.PARTITION_MARKER),
        (".hoodie_partition_metadata.parquet", OtherFile.PARTITION_MARKER),
        # They look like data, but their names have no file group or no instant.
        ("part-00000.parquet", OtherFile.UNKNOWN_DATA),
        (f"{FILE_ID}_0-45-90_20261121034150789.orc", OtherFile.UNKNOWN_DATA),
        (f".{FILE_ID}.log.1", OtherFile.UNKNOWN_DATA),
        # Files that Hudi's readers ignore.
        (f".{FILE_ID}_0-45-90_20261121034150789.parquet.crc", None),
        ("_SUCCESS", None),
        ("notes.txt", None),
    ],
)
def test_parse_file_names(name, expected):
    assert parse_file_name(name) == expected
