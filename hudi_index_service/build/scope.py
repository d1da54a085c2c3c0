"""Selects the partitions that a build is limited to, by path or pattern."""

import re
from collections.abc import Collection, Sequence
from fnmatch import translate
from functools import cache
from urllib.parse import unquote

from hudi_index_service.columns import require_list
from hudi_index_service.errors import ConfigInvalid

_SHOWN = 10


def partitions_in_scope(known: Collection[str], asked: Sequence[str]) -> frozenset[str]:
    """The requested partitions.

    Each of `asked` is one of these:

    - a partition's path relative to the table, as on disk or with its ``%xx`` decoded
    - the path of a folder above partitions (``region=eu``)
    - a shell pattern (``*``, ``?``, ``[…]``) per folder (``region=*/dt=2026-01-*``)

    An existing path is never read as a pattern, whatever characters it contains.

    Args:
        known: The table's partitions with base files, "" for a table without partitions.

    Raises:
        ConfigInvalid: one of `asked` matches no partition.
    """
    require_list(asked, "partitions")
    found: set[str] = set()
    for text in asked:
        if not isinstance(text, str):
            raise ConfigInvalid(
                f"{text!r} is not a partition path.", remedy="Give paths or patterns as text."
            )
        wanted = text.strip("/")
        matches = _matches(known, wanted)
        if not matches:
            raise ConfigInvalid(
                f"The table has no base files in a partition {wanted!r}.",
                remedy=f"Name one of its partitions: {_shown(known)}.",
            )
        found |= matches
    return frozenset(found)


def _matches(known: Collection[str], wanted: str) -> set[str]:
    if wanted in known:
        return {wanted}
    parts = wanted.split("/")
    decoded = {path for path in known if unquote(path) == wanted}
    below = {path for path in known if path.split("/")[: len(parts)] == parts}
    return decoded or below or {path for path in known if _fits(path.split("/"), parts)}


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


def _shown(known: Collection[str]) -> str:
    names = [repr(path) if path else "'' (not partitioned)" for path in sorted(known)]
    if len(names) > _SHOWN:
        return f"{', '.join(names[:_SHOWN])} and {len(names) - _SHOWN} more"
    return ", ".join(names) or "none yet"
