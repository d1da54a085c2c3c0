"""Selects the partitions that a build is limited to, by path or pattern."""

import re
from collections.abc import Collection, Sequence
from fnmatch import translate
from functools import cache
from urllib.parse import unquote

from hudi_index_service.columns import require_list
from hudi_index_service.errors import ConfigInvalid

_SHOWN = 10


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
