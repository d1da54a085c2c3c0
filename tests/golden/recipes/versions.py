"""Merge-on-read tables in the table versions that Hudi 1.2.0 can still write, step by step."""

from tests.golden.recipe import Recipe, compact, delete, put, upsert
from tests.hudi_tables import hudi_options, numbered_rows

PREDICATES = ["amount = 12", "amount > 40 AND msg = 'Buying car 3'", "NOT (amount < 90)", "ts = 1"]
_EVEN = "dt = '2026-01-01'"


def _logged_and_compacted(version: str) -> Recipe:
    """Two partitions: written, one updated, compacted, the same one updated and with deletes."""
    versioned = {"hoodie.write.table.version": version, "hoodie.write.auto.upgrade": "false"}
    last = {"keep": "logged again", "answers": PREDICATES}
    return Recipe(
        hudi_options("t", "MERGE_ON_READ", partition_column="dt", **versioned),
        put(numbered_rows, 0, 40, files=1, answers=PREDICATES),
        upsert(numbered_rows, 0, 10, version=1, where=_EVEN, keep="logged", answers=PREDICATES),
        compact(keep="compacted", answers=PREDICATES),
        upsert(numbered_rows, 10, 20, version=2, where=_EVEN),
        delete(numbered_rows, 0, 4, version=3, where=_EVEN, **last),
    )


version_6 = _logged_and_compacted("6")  # of Hudi 0.14 and 0.15
version_8 = _logged_and_compacted("8")  # of Hudi 1.0
version_9 = _logged_and_compacted("9")  # of Hudi 1.1 and 1.2
