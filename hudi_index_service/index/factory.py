"""Finds index types by entry point: the installed ones, and those of other packages.

A package adds one by an entry point in the group ``hudi_index_service.index_types`` whose value is
a class without arguments that fulfils `hudi_index_service.index.contract.IndexType`.
"""

from collections.abc import Iterable
from functools import cache
from importlib.metadata import EntryPoint, entry_points

from hudi_index_service.errors import IndexDefinitionInvalid, IndexTypeUnknown
from hudi_index_service.index.contract import IndexType

ENTRY_POINT_GROUP = "hudi_index_service.index_types"


def index_type_names() -> list[str]:
    """The names of the installed index types, sorted."""
    return sorted(_installed())


@cache
def index_type(name: str) -> IndexType:
    """The index type of that name (case-insensitive).

    Raises:
        IndexTypeUnknown: none is installed under the name, or its plug-in is broken.
    """
    entry_point = _installed().get(name.lower())
    if entry_point is None:
        raise IndexTypeUnknown(
            f"There is no index type {name!r}.",
            remedy=f"Installed are: {', '.join(index_type_names())}.",
        )
    try:
        found: IndexType = entry_point.load()()
        usable = found.name == name.lower() and callable(found.builder) and callable(found.open)
    except Exception as error:  # a plug-in can fail in any way while it is imported
        raise IndexTypeUnknown(
            f"Index type {name!r} ({entry_point.value}) cannot be loaded: {error!r}.",
            remedy="Repair or uninstall the package that provides it.",
        ) from error
    if not usable:
        raise IndexTypeUnknown(
            f"{entry_point.value} is no index type named {name!r}.",
            remedy="Repair or uninstall the package that provides it.",
        )
    return found


def index_types(names: Iterable[str]) -> tuple[IndexType, ...]:
    """The index types of these names, in their order, for a definition that uses them all.

    Raises:
        IndexTypeUnknown: see `index_type`.
        IndexDefinitionInvalid: no name, or one twice.
    """
    found = tuple(index_type(name) for name in names)
    if not found:
        raise IndexDefinitionInvalid(
            "No index type is named.", remedy=f"Installed are: {', '.join(index_type_names())}."
        )
    for kind in found:
        if [each.name for each in found].count(kind.name) > 1:
            raise IndexDefinitionInvalid(
                f"Index type {kind.name} is named twice.", remedy="Name each index type once."
            )
    return found


def _installed() -> dict[str, EntryPoint]:
    return {point.name.lower(): point for point in entry_points(group=ENTRY_POINT_GROUP)}
