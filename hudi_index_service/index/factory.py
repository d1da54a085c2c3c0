"""Finds index types by entry point: the built-in ones and those of other distributions.

A package adds an index type with an entry point in the group ``hudi_index_service.index_types``.
Its value is a subclass of `hudi_index_service.index.contract.IndexType` that is constructed without
arguments. Its name is the index type's name.
"""

import logging
import sys
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from importlib.metadata import EntryPoint, entry_points
from typing import NoReturn

import pyarrow as pa

from hudi_index_service.errors import (
    IndexDefinitionInvalid,
    IndexServiceError,
    IndexTypeBroken,
    IndexTypeUnknown,
    NativeModuleMissing,
)
from hudi_index_service.index.contract import CONTRACT_VERSION, Answer, IndexType, StoredColumn
from hudi_index_service.predicate.expression import Predicate
from hudi_index_service.wording import did_you_mean

log = logging.getLogger(__name__)

ENTRY_POINT_GROUP = "hudi_index_service.index_types"

_OF_EXTRAS = {"hbase": "hudi_index_hbase"}
"""The index types that this package's extras of the same names install → their modules."""


def index_type_names() -> list[str]:
    """The names of the installed index types, sorted."""
    return sorted(_installed())


@cache
def index_type(name: str) -> IndexType:
    """The index type of that name (case-insensitive). One of an extra that is not installed can do
    nothing but say so.

    Raises:
        IndexTypeUnknown: no index type of that name is installed.
        IndexTypeBroken: it cannot be loaded, or does not fulfil the contract.
    """
    points = _installed().get(name.lower(), [])
    if not points and name.lower() in _OF_EXTRAS:
        return _NotInstalled(name.lower())
    if not points:
        raise IndexTypeUnknown(
            f"There is no index type {name!r}.",
            remedy=f"{did_you_mean(name, index_type_names())}Use one that is installed: "
            f"{', '.join(index_type_names())}.",
        )
    if len({point.value for point in points}) > 1:
        values = " and ".join(sorted(point.value for point in points))
        raise IndexTypeBroken(
            f"Several packages provide an index type {name!r}: {values}.",
            remedy="Uninstall all but one of them.",
        )
    return _load(name.lower(), points[0])


def ready_index_types() -> None:
    """Waits until this process can read indexes of all installed types, see
    `IndexType.ready_runtime`."""
    for name in index_type_names():
        try:
            index_type(name).ready_runtime()
        except IndexServiceError as error:  # whoever needs the type is told
            log.info("Indexes of type %s cannot be read: %s", name, error)


class _NotInstalled(IndexType):
    """An index type of an extra that is not installed here. Its indexes are known, so that they
    are not mistaken for those of nobody, and nothing can be done with them but drop them.

    Args:
        name: The name of the index type.
    """

    contract = CONTRACT_VERSION
    version = sys.maxsize  # no entry is newer: it may be there to be read elsewhere
    name = ""

    def __init__(self, name: str) -> None:
        self.name = name

    def check_runtime(self) -> NoReturn:
        """Says what to install."""
        raise NativeModuleMissing(
            f"The index type {self.name} needs the Python module {_OF_EXTRAS[self.name]}, which is "
            "missing.",
            remedy=f"Install it with pip install 'hudi-index-service[{self.name}]', also on "
            "Spark's executors.",
        )

    def fields(self, column: str, type: pa.DataType, options: Mapping[str, str]) -> tuple[str, ...]:
        """None are known. So every entry holds what is required, and none is due for a field."""
        return ()

    def key_field(self, column: str, type: pa.DataType, key: Sequence[str]) -> str:
        """Not known either."""
        return ""

    def answer(self, leaf: Predicate, columns: Sequence[StoredColumn]) -> Answer:
        """Anything, so that queries try to open entries, and scan for the reason given then."""
        return Answer.SUPERSET

    def builder(self, *args: object, **kwargs: object) -> NoReturn:
        """Says what to install, as does all else that needs the index type."""
        self.check_runtime()

    combine = verify = open = store = stored = destroy = builder


def _load(name: str, entry_point: EntryPoint) -> IndexType:
    """An instance of the entry point's class. Raises IndexTypeBroken if anything is wrong."""
    package = f"Index type {name!r} ({entry_point.value})"
    try:
        instance: object = entry_point.load()()
    except Exception as error:  # a plug-in can fail in any way while it is imported
        raise IndexTypeBroken(f"{package} cannot be loaded: {error!r}.") from error
    if not isinstance(instance, IndexType):
        raise IndexTypeBroken(
            f"{package} is not a subclass of {IndexType.__module__}.IndexType, as version "
            f"{CONTRACT_VERSION} of the contract requires."
        )
    defect = _defect(instance, name)
    if defect is not None:
        raise IndexTypeBroken(f"{package} {defect}.")
    return instance


def _defect(instance: IndexType, name: str) -> str | None:
    if instance.contract != CONTRACT_VERSION:
        return (
            f"was made for version {instance.contract} of the contract (its attribute contract), "
            f"but this release has version {CONTRACT_VERSION}"
        )
    if instance.name != name:
        return f"has the name {instance.name!r}"
    version: object = instance.version
    if not isinstance(version, int):
        return "has no integer version"
    kind = type(instance)
    if kind.store is not IndexType.store:  # what it stores must be found and removed, too
        if kind.stored is IndexType.stored:
            return "lacks the method stored"
        if kind.destroy is IndexType.destroy:
            return "lacks the method destroy"
    return None


def index_types(names: Iterable[str]) -> tuple[IndexType, ...]:
    """The index types of these names, in order, for a definition that uses them all.

    Raises:
        IndexTypeUnknown, IndexTypeBroken: see `index_type`.
        IndexDefinitionInvalid: no name is given, or one is given twice.
    """
    names = tuple(names)
    for name in names:
        if not isinstance(name, str):
            raise IndexTypeUnknown(f"{name!r} is not the name of an index type.")
    kinds = tuple(index_type(name) for name in names)
    if not kinds:
        raise IndexDefinitionInvalid(
            "No index type is given.",
            remedy=f"Use one that is installed: {', '.join(index_type_names())}.",
        )
    for kind in kinds:
        if [each.name for each in kinds].count(kind.name) > 1:
            raise IndexDefinitionInvalid(
                f"Index type {kind.name} is named twice.", remedy="Name each index type once."
            )
    return kinds


def _installed() -> dict[str, list[EntryPoint]]:
    points = defaultdict(list)
    for point in entry_points(group=ENTRY_POINT_GROUP):
        points[point.name.lower()].append(point)
    return dict(points)
