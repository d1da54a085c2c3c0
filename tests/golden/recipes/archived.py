"""Tables whose first instants Hudi archives as soon as it can."""

from collections.abc import Callable

from tests.golden.recipe import Writing, recipe
from tests.hudi_tables import NO_METADATA_TABLE, hudi_options, numbered_rows, timeline_folder, write

ARCHIVE_SOON = {
    "hoodie.keep.min.commits": "2",
    "hoodie.keep.max.commits": "3",
    "hoodie.clean.commits.retained": "1",
    "hoodie.cleaner.commits.retained": "1",
    # Archives as soon as possible.
    "hoodie.commits.archival.batch": "1",
}

ANOTHER = "20200101000000000"
"""A text that a writer stores, which looks like an instant but is none of the table's."""


@recipe
def archived(table: Writing) -> None:
    """The first commit stores texts that look like an instant; some commits later it is
    archived."""
    _archived(table, "9")


@recipe
def archived_in_version_6(table: Writing) -> None:
    """The same, in table version 6."""
    _archived(table, "6")


@recipe
def archived_keys(table: Writing) -> None:
    """A commit with keys of a write config, archived by a writer without them; then a commit that
    switches the index off, archived likewise."""
    spark, path = table.spark, table.path
    options = hudi_options("t", **NO_METADATA_TABLE, **ARCHIVE_SOON)
    keys = {
        "hoodie.index.columns": "msg",
        "hoodie.index.strategy": "all",
        "hoodie.datasource.write.commitmeta.key.prefix": "hoodie.index.",
    }
    rows = numbered_rows(spark, 0, 2)
    write(rows, path, options | keys)
    table.keep("keys")
    _write_until_archived(table, lambda: write(rows, path, options))
    table.keep("keys archived")
    write(rows, path, options | keys | {"hoodie.index.enabled": "false"})
    table.keep("switched off")
    _write_until_archived(table, lambda: write(rows, path, options))
    table.keep("switched off, archived")


def _archived(table: Writing, version: str) -> None:
    spark, path = table.spark, table.path
    options = hudi_options("t", **NO_METADATA_TABLE, **ARCHIVE_SOON) | {
        "hoodie.write.table.version": version,
        "hoodie.write.auto.upgrade": "false",
    }
    # A writer stores a text with the digits of an instant, and one that also has its action.
    stored = {"note_of": ANOTHER, "note_and": f"{ANOTHER} commit"}
    prefix = {"hoodie.datasource.write.commitmeta.key.prefix": "note_"}
    write(numbered_rows(spark, 0, 2), path, options | stored | prefix)
    table.keep("one commit")
    write(numbered_rows(spark, 0, 2), path, options)
    table.keep("two commits")
    first = min(file.name[:17] for file in timeline_folder(path).glob("*commit"))
    while list(timeline_folder(path).glob(f"{first}*commit")):
        write(numbered_rows(spark, 0, 2), path, options)
    table.keep("archived")


def _write_until_archived(table: Writing, write_once: Callable[[], None]) -> None:
    """Writes until the currently latest commit has left the active timeline."""
    folder = timeline_folder(table.path)
    last = max(file.name[:17] for file in folder.glob("*commit"))
    while list(folder.glob(f"{last}*commit")):
        write_once()
