"""Tables whose first instants Hudi archives as soon as it can."""

from collections.abc import Callable, Iterable

from tests.golden.recipe import Recipe, Step, Writing, upsert
from tests.hudi_tables import NO_METADATA_TABLE, hudi_options, numbered_rows, timeline_folder

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


_PREFIX = "hoodie.datasource.write.commitmeta.key.prefix"
_OPTIONS = hudi_options("t", **NO_METADATA_TABLE, **ARCHIVE_SOON)


def _archived(version: str) -> Recipe:
    """The first commit stores texts that look like an instant, one of them with the action, too;
    some commits later it is archived."""
    stored = {"note_of": ANOTHER, "note_and": f"{ANOTHER} commit", _PREFIX: "note_"}
    versioned = {"hoodie.write.table.version": version, "hoodie.write.auto.upgrade": "false"}
    return Recipe(
        {**_OPTIONS, **versioned},
        upsert(numbered_rows, 0, 2, options=stored, keep="one commit"),
        upsert(numbered_rows, 0, 2, keep="two commits"),
        _until_archived(min, "archived"),
    )


def _until_archived(which: Callable[[Iterable[str]], str], keep: str) -> Step:
    """Writes until the currently first or latest commit has left the active timeline."""

    def step(table: Writing) -> None:
        folder = timeline_folder(table.path)
        instant = which(file.name[:17] for file in folder.glob("*commit"))
        while list(folder.glob(f"{instant}*commit")):
            upsert(numbered_rows, 0, 2)(table)
        table.keep(keep)

    return step


archived = _archived("9")
archived_in_version_6 = _archived("6")

# A commit with keys of a write config, archived by a writer without them; then a commit that
# switches the index off, archived likewise.
_KEYS = {
    "hoodie.index.columns": "msg",
    "hoodie.index.strategy": "all",
    _PREFIX: "hoodie.index.",
}
archived_keys = Recipe(
    _OPTIONS,
    upsert(numbered_rows, 0, 2, options=_KEYS, keep="keys"),
    _until_archived(max, "keys archived"),
    upsert(
        *(numbered_rows, 0, 2),
        options={**_KEYS, "hoodie.index.enabled": "false"},
        keep="switched off",
    ),
    _until_archived(max, "switched off, archived"),
)
