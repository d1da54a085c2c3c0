"""Which tables are in the fleet: the sources of the file's groups, looked up in stores and
catalogs, and for each table the policy of the first group that includes it."""

import logging
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase

from hudi_index_service.catalog import tables_in_glue, tables_in_hive
from hudi_index_service.catalog.entry import READ_OPTIMIZED, CatalogTable
from hudi_index_service.errors import (
    IndexServiceError,
    NotAHudiTable,
    StorageFailed,
    StorageUnsupported,
    TableNotFound,
)
from hudi_index_service.fleet.policies.file import FleetFile, Group
from hudi_index_service.fleet.policies.found_before import Found, FoundBefore
from hudi_index_service.fleet.policies.policy import TablePolicy
from hudi_index_service.fleet.policies.references import Reference, resolved
from hudi_index_service.fleet.policies.sources import (
    ANY_FOLDERS,
    DatabaseSource,
    PathSource,
    Place,
    Source,
    fits,
    may_lead_to,
    parse_source,
)
from hudi_index_service.hudi.properties import HOODIE_FOLDER, PROPERTIES_FILE
from hudi_index_service.storage.store import Storage, normalize_uri

log = logging.getLogger(__name__)

_ROUNDS_UNTIL_ASKED = 60

CatalogTables = Callable[[DatabaseSource], list[tuple[str, CatalogTable]]]
"""The tables of a catalog's database, each with its name. Raises IndexServiceError."""


@dataclass(frozen=True, slots=True)
class FailedSource:
    """A source that could not be looked up, as of an unreachable catalog.

    Attributes:
        source: As the file has it.
        group: The first group that names it.
        error: Why.
        kept: The number of its tables, found before, that stay in the fleet.
    """

    source: str
    group: str
    error: IndexServiceError
    kept: int

    @property
    def problem(self) -> IndexServiceError:
        """The error, with where the file has the source."""
        return self.error.reworded(f"{self.source} of group {self.group}: {self.error.message}")


@dataclass(frozen=True, slots=True)
class Discovered:
    """The fleet's tables, by name, and the sources that could not be looked up."""

    tables: Mapping[str, TablePolicy]
    failed: tuple[FailedSource, ...] = ()


def catalog_tables(source: DatabaseSource) -> list[tuple[str, CatalogTable]]:
    """The tables of a database, asked of its catalog. Raises IndexServiceError."""
    if source.catalog == "glue":
        return tables_in_glue(source.database)
    return tables_in_hive(source.catalog, source.database)


class Discovery:
    """Looks up the tables of fleet files. It remembers what each source had, so that one that is
    down leaves its tables in the fleet. Not for several threads at once.

    Args:
        catalog: Asks catalogs.
        before: What sources had when an earlier service looked them up; None for nothing.
    """

    def __init__(
        self, catalog: CatalogTables = catalog_tables, before: FoundBefore | None = None
    ) -> None:
        self._catalog = catalog
        self._before = before
        self._known: Found = {} if before is None else before.read()
        """Source → its tables when it was last looked up."""
        self._failing: dict[str, str] = {}
        """Source → why it could not be looked up the last time."""
        self._rounds = 0

    def discover(self, file: FleetFile) -> Discovered:
        """The tables of the file's groups, as stores and catalogs have them now. What cannot be
        looked up raises nothing; it is logged, once for each reason."""
        self._rounds += 1
        found: dict[str, tuple[Group, Place]] = {}
        failed: list[FailedSource] = []
        looked_up: dict[str, tuple[Place, ...]] = {}
        for group in file.groups:
            excluded = [parse_source(text) for text in group.exclude]
            for text in group.include:
                if text not in looked_up:
                    looked_up[text] = self._look_up(text, group, file.rules(group).storage, failed)
                for place in looked_up[text]:
                    if not any(each.matches(place) for each in excluded):
                        found.setdefault(place.uri, (group, place))
        self._known = looked_up
        if self._before is not None:
            self._before.write(looked_up)
        self._failing = {each.source: str(each.error) for each in failed}
        names = unique_names([place for _, place in found.values()])
        policies = {
            names[uri]: file.policy(group, place, names[uri])
            for uri, (group, place) in found.items()
        }
        return Discovered(dict(sorted(policies.items())), tuple(failed))

    def _look_up(
        self,
        text: str,
        group: Group,
        storage: Mapping[str, Reference],
        failed: list[FailedSource],
    ) -> tuple[Place, ...]:
        source = parse_source(text)
        try:
            return tuple(self._places(source, storage, self._tables_of(text)))
        except IndexServiceError as error:
            failure = error
        except OSError as error:
            failure = StorageFailed(f"{text} cannot be listed: {error}.")
        kept = self._known.get(text, ())
        if self._failing.get(text) != str(failure):
            log.warning("%s of group %s: %s", text, group.name, failure)
        failed.append(FailedSource(text, group.name, failure, len(kept)))
        return kept

    def _tables_of(self, text: str) -> frozenset[str]:
        """The tables that a source is known to have. Whether they still are tables is asked seldom:
        each would be a request, and the look at the table says what is wrong with it."""
        if self._rounds % _ROUNDS_UNTIL_ASKED == 0:
            return frozenset()
        return frozenset(place.uri for place in self._known.get(text, ()))

    def _places(
        self, source: Source, storage: Mapping[str, Reference], known: frozenset[str]
    ) -> Iterator[Place]:
        if isinstance(source, DatabaseSource):
            yield from self._in_database(source)
        elif source.pattern:
            yield from _matching(source, Storage(source.root, resolved(storage)), known)
        else:
            yield Place(source.root)

    def _in_database(self, source: DatabaseSource) -> Iterator[Place]:
        for name, entry in self._catalog(source):
            # Of the two entries of a merge-on-read table, the other one is the table.
            is_second = entry.serde.get(READ_OPTIMIZED, "").lower() == "true"
            if is_second or not fnmatchcase(name, source.tables):
                continue
            try:
                uri = normalize_uri(entry.base_path())
            except NotAHudiTable:
                continue
            except StorageUnsupported as error:
                log.warning("%s.%s is left out: %s", source.uri, name, error)
                continue
            yield Place(uri, source.catalog, source.database, name)


def _matching(
    source: PathSource, storage: Storage, known: frozenset[str] = frozenset()
) -> Iterator[Place]:
    """The tables whose paths a glob matches. Folders in tables are not looked at, nor is asked
    whether a folder that is there is a table, if it is known."""
    if storage.is_local and not storage.root_exists():
        raise TableNotFound(
            f"There is no folder {source.root}.", remedy="Create it, or correct the fleet file."
        )
    folders = [""]
    while folders:
        folder = folders.pop()
        for path in sorted(storage.folders(folder)):
            parts = path.split("/")
            if parts[-1].startswith((".", "_")):
                continue
            matches, leads_on = fits(parts, source.pattern), may_lead_to(parts, source.pattern)
            uri = f"{source.root.rstrip('/')}/{path}"
            is_table = (matches or leads_on) and (uri in known or _is_table(storage, path))
            if is_table and matches:
                yield Place(uri)
            elif leads_on and not is_table:
                folders.append(path)


def tables_at(path: str) -> list[str]:
    """The base paths of the tables in a folder, at any depth, sorted; that of a table is itself.
    What cannot be listed, or holds none, counts as a table: who opens it learns what is wrong."""
    # A folder of Hudi's own is a mistake, although it may hold the metadata table.
    if path.startswith(("glue://", "hive://")) or HOODIE_FOLDER in path.split("/"):
        return [path]
    try:
        source = PathSource(path, normalize_uri(path), (ANY_FOLDERS,))
        storage = Storage(source.root)
        tables = [] if _is_table(storage, "") else sorted(p.uri for p in _matching(source, storage))
    except (IndexServiceError, OSError):
        return [path]
    return tables or [path]


def _is_table(storage: Storage, folder: str) -> bool:
    try:
        storage.size(f"{folder}/{PROPERTIES_FILE}" if folder else PROPERTIES_FILE)
    except (FileNotFoundError, NotADirectoryError):
        return False
    return True


def unique_names(places: Iterable[Place]) -> dict[str, str]:
    """URI → name in the fleet: ``database.table`` as in the catalog, or the last two parts of the
    path. Names that are equal take more: the catalog, further parts of the path."""
    candidates = {place.uri: _names(place) for place in places}
    chosen = dict.fromkeys(candidates, 0)
    while True:
        by_name: defaultdict[str, list[str]] = defaultdict(list)
        for uri, at in chosen.items():
            by_name[candidates[uri][at]].append(uri)
        longer = [
            uri
            for uris in by_name.values()
            if len(uris) > 1
            for uri in uris
            if chosen[uri] + 1 < len(candidates[uri])
        ]
        if not longer:
            return {uri: candidates[uri][at] for uri, at in chosen.items()}
        for uri in longer:
            chosen[uri] += 1


def _names(place: Place) -> Sequence[str]:
    """Names of a table, from the shortest one to one that no other table has."""
    if place.table:
        name = f"{place.database}.{place.table}"
        return name, f"{place.catalog.removeprefix('hive://')}.{name}", place.uri
    path = place.uri.partition("://")[2] or place.uri
    parts = [part for part in path.split("/") if part]
    shortest = min(2, len(parts))
    lengths = range(shortest, len(parts) + 1)
    return *(".".join(parts[-length:]) for length in lengths), place.uri
