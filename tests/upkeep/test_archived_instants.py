"""An instant that was archived has been there; one that never was has not."""

import pytest

from hudi_index_service import open_table
from tests.hudi_tables import NO_METADATA_TABLE, hudi_options, numbered_rows, write

ARCHIVE_SOON = {
    "hoodie.keep.min.commits": "2",
    "hoodie.keep.max.commits": "3",
    "hoodie.clean.commits.retained": "1",
    "hoodie.cleaner.commits.retained": "1",
    # Archives as soon as it may.
    "hoodie.commits.archival.batch": "1",
}

ANOTHER = "20200101000000000"


@pytest.mark.parametrize("table_version", ["6", "9"])
def test_archived_instant(spark, tmp_path, table_version):
    options = hudi_options("t", **NO_METADATA_TABLE, **ARCHIVE_SOON) | {
        "hoodie.write.table.version": table_version,
        "hoodie.write.auto.upgrade": "false",
    }
    path = tmp_path / "t"
    # A writer stores a text with the digits of an instant, and one with its action.
    stored = {"note_of": ANOTHER, "note_and": f"{ANOTHER} commit"}
    prefix = {"hoodie.datasource.write.commitmeta.key.prefix": "note_"}
    write(numbered_rows(spark, 0, 2), path, options | stored | prefix)
    with open_table(path) as table:
        (first,) = table.hudi_table.completed_instants()
        assert table.hudi_table.has_had(first.requested)
        seen = {first.requested}
        while first in table.hudi_table.completed_instants():
            assert len(seen) < 9
            write(numbered_rows(spark, 0, 2), path, options)
            seen |= {each.requested for each in table.hudi_table.completed_instants()}
        assert table.hudi_table.has_had(first.requested)
        assert not table.hudi_table.has_had(ANOTHER)
        # Between the first write and the second one: they are more than a millisecond apart.
        assert not table.hudi_table.has_had(str(int(sorted(seen)[1]) - 1))
