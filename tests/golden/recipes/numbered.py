"""Tables of numbered rows (`numbered_rows`) in the states that builds and cleaning encounter."""

from functools import partial

from tests.golden.recipe import Recipe, cluster, compact, put, upsert
from tests.hudi_tables import NO_METADATA_TABLE, hudi_options, numbered_rows, write_four_base_files

QUERIES = (
    "amount = 30",
    "msg = 'Buying car 3'",
    "msg LIKE 'Buying car 3%' AND amount < 90",
    "NOT (amount >= 30 OR msg = 'Buying car 3')",
    "id IN ('12', '13')",
    "amount IS NULL",
)

# Two partitions, clustered; then the even ids' partition rewritten by a plain upsert.
clustered_then_upserted = Recipe(
    hudi_options("cow", partition_column="dt"),
    put(numbered_rows, 0, 100, keep="written"),
    cluster(keep="clustered"),
    upsert(numbered_rows, 0, 100, version=1, where="amount % 2 = 1", keep="upserted"),
)

# Merge on read, not partitioned: a base file, a log file, compacted; then another log file.
compacted_then_updated = Recipe(
    hudi_options("mor", "MERGE_ON_READ"),
    put(numbered_rows, 0, 100, files=1, keep="written"),
    upsert(numbered_rows, 0, 10, version=1),
    compact(keep="compacted"),
    upsert(numbered_rows, 90, 100, version=2, keep="updated"),
)

# Two partitions, clustered; then five upserts to the odd ids' partition, after which Hudi has
# cleaned its first base files and archived the first instants.
_KEEP_FEW = {
    "hoodie.clean.commits.retained": "1",
    "hoodie.keep.min.commits": "2",
    "hoodie.keep.max.commits": "3",
}
_odd = partial(upsert, numbered_rows, 0, 100, where="dt = '2026-01-02'")
cleaned_and_archived = Recipe(
    hudi_options("t", partition_column="dt", **_KEEP_FEW),
    put(numbered_rows, 0, 100),
    cluster(keep="clustered"),
    *(_odd(version=each) for each in range(1, 5)),
    _odd(version=5, keep="cleaned"),
)

# 60 rows in two base files, one in each partition; clustered; then the partition 2026-01-01
# rewritten by an upsert.
sixty_rows = Recipe(
    hudi_options("plain", partition_column="dt", **NO_METADATA_TABLE),
    put(numbered_rows, 0, 60, files=1, keep="written"),
    cluster(),
    upsert(numbered_rows, 0, 60, version=1, where="dt = '2026-01-01'", keep="upserted"),
)

# Merge on read, a base file in each of two partitions; then the even ids' partition compacted;
# then a log file for the other partition's base file.
half_compacted = Recipe(
    hudi_options("status", "MERGE_ON_READ", partition_column="dt", **NO_METADATA_TABLE),
    put(numbered_rows, 0, 40, files=1, keep="written"),
    upsert(numbered_rows, 0, 40, version=1, where="id = '2'"),
    compact(),
    upsert(numbered_rows, 0, 40, version=2, where="id = '3'", keep="updated"),
)

# Two partitions, clustered; then the odd ids' partition rewritten three times, after which Hudi has
# cleaned its clustered base file.
_KEEP_ONE = {"hoodie.clean.commits.retained": "1", **NO_METADATA_TABLE}
rewritten_three_times = Recipe(
    hudi_options("t", partition_column="dt", **_KEEP_ONE),
    put(numbered_rows, 0, 100, answers=QUERIES),
    cluster(keep="clustered", answers=QUERIES),
    *(_odd(version=each, keep=f"rewritten {each}", answers=QUERIES) for each in (1, 2, 3)),
)

# 2,000 rows in two partitions of two base files each.
four_base_files = Recipe({}, lambda table: write_four_base_files(table.spark, table.path, 2000))

# 20 rows in two base files, one in each partition; then clustered.
two_partitions = Recipe(
    hudi_options("small", partition_column="dt", **NO_METADATA_TABLE),
    put(numbered_rows, 0, 20, files=1, keep="written"),
    cluster(keep="clustered"),
)

# 200 rows, not partitioned; then clustered.
two_hundred_rows = Recipe(
    hudi_options("cli"), put(numbered_rows, 0, 200, keep="written"), cluster(keep="clustered")
)
