"""Selects the base files that a build is limited to, by instant and by partition."""

import re
from collections.abc import Collection, Sequence
from fnmatch import translate
from functools import cache
from urllib.parse import unquote

from hudi_index_service.columns import require_list
from hudi_index_service.errors import ConfigInvalid
from hudi_index_service.hudi.protocol import BaseFile, HudiTable

_SHOWN = 10


def base_files_in_scope(
    table: HudiTable,
    base_files: Sequence[BaseFile],
    instant: str | None,
    partitions: Sequence[str] | None,
) -> list[BaseFile]:
    """The base files that the instant wrote, in the partitions; None for no limit.

    Raises:
        ConfigInvalid: the instant never completed, or a partition does not exist.
    """
    if instant is not None and not table.has_had(instant):
        raise ConfigInvalid(
            f"The table has no completed instant {instant!r}.",
            remedy="Give an instant's requested time, as in the names of base files.",
        )
    all_partitions = {file.partition for file in base_files}
    scope = (
        all_partitions if partitions is None else partitions_in_scope(all_partitions, partitions)
    )
    return [
        file
        for file in base_files
        if (instant is None or file.instant == instant) and file.partition in scope
    ]


def partitions_in_scope(partitions: Collection[str], selectors: Sequence[str]) -> frozenset[str]:
    """The requested partitions.

    Each of `selectors` is one of these:

    - a partition's path relative to the table, as on disk or with its ``%xx`` decoded
    - the path of a folder above partitions (``region=eu``)
    - a shell pattern (``*``, ``?``, ``[…]``) per folder (``region=*/dt=2026-01-*``)

    An existing path is never read as a pattern, whatever characters it contains.

    Args:
        partitions: The table's partitions with base files, "" for a table without partitions.

    Raises:
        ConfigInvalid: one of `selectors` matches no partition.
    """
    require_list(selectors, "partitions")
    selected: set[str] = set()
    for text in selectors:
        if not isinstance(text, str):
            raise ConfigInvalid(
                f"{text!r} is not a partition path.", remedy="Give paths or patterns as text."
            )
        selector = text.strip("/")
        matches = _matches(partitions, selector)
        if not matches:
            raise ConfigInvalid(
                f"The table has no base files in a partition {selector!r}.",
                remedy=f"Name one of its partitions: {_listing(partitions)}.",
            )
        selected |= matches
    return frozenset(selected)


def _matches(partitions: Collection[str], selector: str) -> set[str]:
    if selector in partitions:
        return {selector}
    parts = selector.split("/")
    decoded = {path for path in partitions if unquote(path) == selector}
    below = {path for path in partitions if path.split("/")[: len(parts)] == parts}
    return decoded or below or {path for path in partitions if _fits(path.split("/"), parts)}


def _fits(folders: list[str], patterns: list[str]) -> bool:
    """Whether the leading folders match the patterns one by one, as they are or decoded."""
    if len(folders) < len(patterns):
        return False
    return all(
        _pattern(pattern).fullmatch(folder) or _pattern(pattern).fullmatch(unquote(folder))
        for folder, pattern in zip(folders, patterns, strict=False)
    )


@cache
def _pattern(text: str) -> re.Pattern[str]:
    return re.compile(translate(text))


def _listing(partitions: Collection[str]) -> str:
    names = [repr(path) if path else "'' (not partitioned)" for path in sorted(partitions)]
    if len(names) > _SHOWN:
        return f"{', '.join(names[:_SHOWN])} and {len(names) - _SHOWN} more"
    return ", ".join(names) or "none yet"
