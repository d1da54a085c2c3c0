"""Finds index types by entry point: the installed ones, and those of other packages.

A package adds one by an entry point in the group ``hudi_index_service.index_types`` whose value is
a class without arguments that fulfils `hudi_index_service.index.contract.IndexType`. The name of
the entry point is the index type's.
"""

from collections import defaultdict
from collections.abc import Iterable
from functools import cache
from importlib.metadata import EntryPoint, entry_points
from typing import cast

from hudi_index_service.config import Settings
from hudi_index_service.errors import IndexDefinitionInvalid, IndexTypeBroken, IndexTypeUnknown
from hudi_index_service.index.contract import CONTRACT_VERSION, IndexType

ENTRY_POINT_GROUP = "hudi_index_service.index_types"

_REQUIRED = ("fields", "builder", "combine", "answer", "verify", "open")
_REQUIRED_TO_STORE = ("configured", "store", "stored", "destroy")


def index_type_names() -> list[str]:
    """The names of the installed index types, sorted."""
    return sorted(_installed())


@cache
def index_type(name: str) -> IndexType:
    """The index type of that name (case-insensitive).

    Raises:
        IndexTypeUnknown: none is installed under the name.
        IndexTypeBroken: what is installed cannot be loaded, or does not fulfil the contract.
    """
    found = _installed().get(name.lower(), [])
    if not found:
        raise IndexTypeUnknown(
            f"There is no index type {name!r}.",
            remedy=f"Installed are: {', '.join(index_type_names())}.",
        )
    if len({point.value for point in found}) > 1:
        values = " and ".join(sorted(point.value for point in found))
        raise IndexTypeBroken(
            f"Several packages bring an index type {name!r}: {values}.",
            remedy="Uninstall all of them but one.",
        )
    return _loaded(name.lower(), found[0])


def with_settings(kind: IndexType, settings: Settings) -> IndexType:
    """The index type with these settings, if it is one that has any."""
    return kind.configured(settings) if keeps_elsewhere(kind) else kind


def keeps_elsewhere(kind: IndexType) -> bool:
    """Whether it keeps data elsewhere than in an entry's files."""
    return callable(getattr(kind, "store", None))


def check_runtime(kind: IndexType) -> None:
    """See `IndexType.check_runtime`. Raises NativeModuleMissing."""
    check = getattr(kind, "check_runtime", None)
    if check is not None:
        check()


def _loaded(name: str, entry_point: EntryPoint) -> IndexType:
    """Raises IndexTypeBroken if there is anything wrong with it."""
    try:
        found: IndexType = entry_point.load()()
    except Exception as error:  # a plug-in can fail in any way while it is imported
        raise IndexTypeBroken(
            f"Index type {name!r} ({entry_point.value}) cannot be loaded: {error!r}."
        ) from error
    wrong = _what_is_wrong(found, name)
    if wrong is not None:
        raise IndexTypeBroken(f"Index type {name!r} ({entry_point.value}) {wrong}.")
    return found


def _what_is_wrong(found: object, name: str) -> str | None:
    made_for = getattr(found, "contract", None)
    if made_for != CONTRACT_VERSION:
        return (
            f"was made for version {made_for} of the contract (its attribute contract), "
            f"this release has {CONTRACT_VERSION}"
        )
    if getattr(found, "name", None) != name:
        return f"says that its name is {getattr(found, 'name', None)!r}"
    if not isinstance(getattr(found, "version", None), int):
        return "has no version that is an integer"
    required = (*_REQUIRED, *_REQUIRED_TO_STORE * keeps_elsewhere(cast(IndexType, found)))
    missing = [each for each in required if not callable(getattr(found, each, None))]
    return f"lacks the method {missing[0]}" if missing else None


def index_types(names: Iterable[str]) -> tuple[IndexType, ...]:
    """The index types of these names, in their order, for a definition that uses them all.

    Raises:
        IndexTypeUnknown, IndexTypeBroken: see `index_type`.
        IndexDefinitionInvalid: no name, or one twice.
    """
    names = tuple(names)
    for name in names:
        if not isinstance(name, str):
            raise IndexTypeUnknown(f"{name!r} is no index type's name.")
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


def _installed() -> dict[str, list[EntryPoint]]:
    found = defaultdict(list)
    for point in entry_points(group=ENTRY_POINT_GROUP):
        found[point.name.lower()].append(point)
    return dict(found)
