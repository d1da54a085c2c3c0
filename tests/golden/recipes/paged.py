"""Tables whose base files have many pages, to count and choose pages while reading."""

from tests.golden.recipe import Recipe, numbers, put, upsert
from tests.hudi_tables import NO_METADATA_TABLE, hudi_options, numbered_rows

PAGE_SIZE = "hoodie.parquet.page.size"

ID, TS, PART = "cast(id AS string) AS id", "cast(0 AS bigint) AS ts", "concat('p', id % 2) AS part"


def _paged(partition_column: str | None, rows: int, *columns: str, **options: str) -> Recipe:
    own = hudi_options("t", partition_column=partition_column, **NO_METADATA_TABLE)
    return Recipe({**own, **options}, put(numbers, rows, *columns))


# 20,000 rows in two base files, one in each partition; `zip` determines `city`; the texts are long
# to read, small to store.
zips_in_two_partitions = _paged(
    *("part", 20_000, ID, "concat('zip', id % 100) AS zip", "concat('city', id % 100) AS city"),
    "cast(id AS int) AS amount",
    "repeat(substr(md5(cast(id AS string)), 1, 4), 32) AS text",
    *(TS, PART),
)

# 12,000 rows in two base files, one in each partition, in pages of about a hundred rows.
colours_in_two_partitions = _paged(
    *("part", 12_000, ID, "repeat(substr(md5(cast(id AS string)), 1, 8), 4) AS msg"),
    "if(id % 8 < 2, 'red', 'blue') AS colour",
    *("cast(id % 1000 AS int) AS size", "1L AS ts", PART),
    **{PAGE_SIZE: "512", "hoodie.table.name": "batches"},
)

# 30,000 rows in one base file with several row groups of several pages; `kind` is in runs of 300
# rows.
runs_in_row_groups = _paged(
    *(None, 30_000, ID, "concat('name', id) AS name"),
    "concat('kind', cast(id AS int) div 300) AS kind",
    *("md5(cast(id AS string)) AS text", "pmod(id * 7919, 30000) AS number", TS),
    **{PAGE_SIZE: "4096", "hoodie.parquet.block.size": "300000"},
)

# 10,000 rows in one base file: unique names, a thousand cities, long texts.
names_of_cities = _paged(
    *(None, 10_000, ID, "concat('name', id) AS name", "concat('city', id % 1000) AS city"),
    "repeat(sha2(cast(id % 400 AS string), 512), 4) AS text",
    *("cast(id AS int) AS amount", "map('a', id) AS odd", TS),
)

# 60,000 rows in one base file with pages of 8 KiB; each name occurs in three rows.
names_in_small_pages = _paged(
    *(None, 60_000, ID, "concat('name', id % 20000) AS name"),
    "repeat(substr(md5(cast(id AS string)), 1, 2), 4) AS text",
    *("id AS amount", "cast(id % 4 AS string) AS kind", TS),
    **{PAGE_SIZE: "8192"},
)

# A hundred partitions of one base file each, with two rows: the amounts differ in each file, and
# the messages are the same in all.
hundred_base_files = _paged(
    *("part", 200, ID, "concat('Buying car ', id % 2) AS msg", "id AS amount", TS),
    "concat('p', lpad(cast(id AS int) div 2, 3, '0')) AS part",
)

# 20,000 rows, merge on read: a base file of at least three pages in each of two partitions; the one
# with the odd ids has a log file.
three_pages_with_logs = Recipe(
    hudi_options("remote", "MERGE_ON_READ", partition_column="dt"),
    put(numbered_rows, 0, 20_000, files=1, options={PAGE_SIZE: "20000"}),
    upsert(numbered_rows, 51, 52, version=2),
)
