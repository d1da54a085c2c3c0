"""What a table's status means for builds: what they leave as it is, and what to do about it."""

from collections.abc import Callable

from hudi_index_service.maintain.status import IndexStatus, TableStatus


def idle_reason(status: TableStatus) -> str | None:
    """Why builds of the strategy incremental have nothing to do on the table as it is, although no
    base file is indexed, with the remedy; None if they have, or if some are, or there are none."""
    if all(each.base_files and each.left == each.base_files for each in status):
        return coverage_hints(status)[0]
    return None


def coverage_hints(status: TableStatus) -> list[str]:
    """The base files that incremental builds will not cover, and how to cover them."""
    if not status:
        return [
            f"The table has no index: `hudi-index create {status.uri} NAME COLUMN...` defines one."
        ]
    hints = []
    if older := _files_of(status, lambda each: each.left):
        hints.append(
            f"Not indexed and not due: {older}. They were written before the index was "
            f"defined, or not by clustering or compaction: `hudi-index build {status.uri} "
            "--strategy all` indexes them."
        )
    if outdated := _files_of(status, lambda each: each.outdated):
        names = sorted({each.definition.name for each in status if each.outdated})
        hints.append(
            f"Not up to date: {outdated}. The index was changed since their entries were built, "
            "which serve what still matches: "
            + ", ".join(f"`hudi-index refresh {status.uri} {name}`" for name in names)
            + " updates them."
        )
    for each in status:
        for column, (number, reason) in each.skipped.items():
            hints.append(
                f"Not indexed: column {column} in {number} of {each.base_files} base files for "
                f"{each.definition.name} ({each.index_type}). {reason} Rewritten base files, as "
                "by clustering, hold it as the table does."
            )
    if damaged := _files_of(status, lambda each: each.damaged):
        hints.append(
            f"Damaged, so scanned: the entries of {damaged}. `hudi-index verify {status.uri} "
            "--repair` rebuilds them."
        )
    if newer := _files_of(status, lambda each: each.newer):
        hints.append(
            f"Of a newer release: the entries of {newer}. Upgrade this installation to use them."
        )
    return hints


def _files_of(status: TableStatus, number: Callable[[IndexStatus], int]) -> str:
    """The indexes with a number of base files other than 0, as text."""
    return ", ".join(
        f"{number(each)} of {each.base_files} base files for {each.definition.name} "
        f"({each.index_type})"
        for each in status
        if number(each)
    )
