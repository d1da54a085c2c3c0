"""What ``include`` and ``exclude`` of the fleet file name: a path, a glob of paths, or the tables
of a catalog's database.

==================================  =============================================================
``/lake/sales/orders``              the table at a path; ``s3://``, ``hdfs://`` and others likewise
``s3://lake/*/orders``              the tables that a glob matches; ``**`` is any number of folders
``glue://sales``                    the tables of a database in AWS Glue's Data Catalog
``glue://sales.orders_*``           those of them whose names match
``hive://host:9083/sales``          the tables of a database in a Hive metastore; likewise
==================================  =============================================================
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase

from hudi_index_service.errors import IndexServiceError
from hudi_index_service.storage.store import normalize_uri

_WILD = re.compile(r"[*?\[]")
_GLUE = re.compile(r"(?P<catalog>glue)://(?P<database>[^./]+)(?:\.(?P<table>[^/]+))?")
_HIVE = re.compile(
    r"(?P<catalog>hive://(?:[^/:]+|\[[^]/]+\])(?::\d{1,5})?)/(?P<database>[^./]+)"
    r"(?:\.(?P<table>[^/]+))?"
)
ANY_FOLDERS = "**"


@dataclass(frozen=True, slots=True)
class Place:
    """Where a table is: its base path, and its names in a catalog, "" for a path alone."""

    uri: str
    catalog: str = ""
    database: str = ""
    table: str = ""


@dataclass(frozen=True, slots=True)
class DatabaseSource:
    """Tables of a catalog's database.

    Attributes:
        text: As the file has it.
        catalog: ``glue`` or ``hive://host:port``.
        tables: A shell pattern for their names.
    """

    text: str
    catalog: str
    database: str
    tables: str = "*"

    def matches(self, place: Place) -> bool:
        """Whether it names the table."""
        return (place.catalog, place.database) == (self.catalog, self.database) and fnmatchcase(
            place.table, self.tables
        )

    @property
    def uri(self) -> str:
        """The database, as messages name it."""
        separator = "://" if self.catalog == "glue" else "/"
        return f"{self.catalog}{separator}{self.database}"


@dataclass(frozen=True, slots=True)
class PathSource:
    """A path, or a glob of paths.

    Attributes:
        text: As the file has it.
        root: The folder above the first part with a wildcard; the table's path if there is none.
        pattern: The further parts.
    """

    text: str
    root: str
    pattern: tuple[str, ...] = ()

    def matches(self, place: Place) -> bool:
        """Whether it names the table."""
        if not self.pattern:
            return place.uri == self.root
        above = self.root.rstrip("/") + "/"
        return place.uri.startswith(above) and fits(
            place.uri.removeprefix(above).split("/"), self.pattern
        )


Source = PathSource | DatabaseSource


def parse_source(text: str) -> Source:
    """What a text of ``include`` or ``exclude`` names.

    Raises:
        ValueError: it is no source; the message says why.
    """
    if text.startswith(("glue:", "hive:")):
        match = _GLUE.fullmatch(text) or _HIVE.fullmatch(text)
        if match is None or _WILD.search(match["database"]):
            raise ValueError(
                f"{text!r} names no database: write glue://database or hive://host:9083/database, "
                "and after a dot a pattern for tables"
            )
        return DatabaseSource(text, match["catalog"], match["database"], match["table"] or "*")
    if not (text.startswith(("/", "file:/")) or re.match(r"[a-z0-9]+://", text)):
        raise ValueError(f"{text!r} is not an absolute path")
    parts = text.rstrip("/").split("/")
    wild = next((at for at, part in enumerate(parts) if _WILD.search(part)), len(parts))
    try:
        root = normalize_uri("/".join(parts[:wild]) or "/")
    except IndexServiceError as error:
        raise ValueError(error.message.rstrip(".")) from error
    return PathSource(text, root, tuple(each for each in parts[wild:] if each))


def fits(parts: Sequence[str], pattern: Sequence[str]) -> bool:
    """Whether the folders on a path match a pattern, which may have ``**``."""
    if not pattern:
        return not parts
    if pattern[0] == ANY_FOLDERS:
        return any(fits(parts[skipped:], pattern[1:]) for skipped in range(len(parts) + 1))
    return bool(parts) and fnmatchcase(parts[0], pattern[0]) and fits(parts[1:], pattern[1:])


def may_lead_to(parts: Sequence[str], pattern: Sequence[str]) -> bool:
    """Whether a folder below this one could match the pattern."""
    if not parts:
        return bool(pattern)
    if not pattern:
        return False
    if pattern[0] == ANY_FOLDERS:
        return True
    return fnmatchcase(parts[0], pattern[0]) and may_lead_to(parts[1:], pattern[1:])
