"""What a catalog says about a table, and whether that is a Hudi table."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from hudi_index_service.errors import NotAHudiTable, Remedy

PROVIDER = "spark.sql.sources.provider"
"""The table parameter in which Spark, and Hudi's synchronization, state the format."""

_HUDI_FORMATS = ("org.apache.hudi.", "com.uber.hoodie.")

READ_OPTIMIZED = "hoodie.query.as.ro.table"
"""The storage parameter that Hudi's synchronization sets for a merge-on-read table's second
entry, by which queries leave out log files."""


@dataclass(frozen=True, slots=True)
class CatalogTable:
    """A table as its catalog describes it.

    Attributes:
        name: As the user wrote it, for messages.
        location: A folder; None for a view.
        provider: The format's name in Spark, if it is stated.
        input_format: The class by which Hive reads the table, if it is stated.
        serde: The parameters of the storage.
    """

    name: str
    is_view: bool
    location: str | None
    provider: str | None = None
    input_format: str | None = None
    serde: Mapping[str, str] = field(default_factory=dict)

    def base_path(self) -> str:
        """The base path of the Hudi table.

        Raises:
            NotAHudiTable: it is a view, or a table of another format.
        """
        if self.is_view:
            raise NotAHudiTable(f"{self.name} is a view.", remedy="Name the table that it reads.")
        if self.location is None or not self._is_hudi():
            kind = f", but of format {self.provider}" if self.provider else ""
            raise NotAHudiTable(
                f"{self.name} is not a Hudi table{kind}.",
                remedy="Name a table created with USING hudi, or synchronized by Hudi.",
            )
        return self.location

    def base_path_to_read(self) -> str:
        """The base path, for queries on this name.

        Raises:
            NotAHudiTable: as `base_path`; or it is the read-optimized view of a merge-on-read
                table, which would silently be read with its log files.
        """
        path = self.base_path()
        if self.serde.get(READ_OPTIMIZED, "").lower() == "true":
            raise NotAHudiTable(
                f"{self.name} is the read-optimized view of the Hudi table at {path}.",
                remedy=Remedy(
                    'Open that table, and pass query_type="read_optimized" to its methods.',
                    command="Name that table, and give --query-type read_optimized.",
                ),
            )
        return path

    def _is_hudi(self) -> bool:
        if self.provider is not None:
            return self.provider.lower() == "hudi"
        return (self.input_format or "").startswith(_HUDI_FORMATS)
