"""The service's memory of a table between runs, in the user's state folder (mode 0700).

Each table has one JSON file, named by a digest of its base path. Without it, the service only
misses that the table was overwritten between two runs, and the keys of archived commits.
"""

import hashlib
import logging
from pathlib import Path

from pydantic import BaseModel, ConfigDict, ValidationError

from hudi_index_service.maintain.overwrite import KnownTable
from hudi_index_service.storage.private_file import write_private_file
from hudi_index_service.wording import first_mistake

log = logging.getLogger(__name__)


class Remembered(BaseModel):
    """One table.

    Attributes:
        uri: Its base path.
        table: Its indexes and its latest completed instant.
        keys: The ``hoodie.index.*`` keys applied last, as written in the write config.
        committed: Those that a commit stored, archived or not.
    """

    model_config = ConfigDict(frozen=True)

    uri: str
    table: KnownTable
    keys: dict[str, str] = {}
    committed: dict[str, str] = {}


class TableMemory:
    """The file of one table.

    Args:
        folder: The state folder; created at first use.
        uri: The table's base path.
    """

    def __init__(self, folder: Path, uri: str) -> None:
        digest = hashlib.sha256(uri.encode()).hexdigest()[:32]
        self._uri = uri
        self._path = folder / "tables" / f"{digest}.json"
        self._state: Remembered | None = None
        self._has_warned = False

    def load(self) -> Remembered | None:
        """The remembered state; None if there is none or it cannot be read."""
        if self._state is None:
            try:
                state = Remembered.model_validate_json(self._path.read_bytes())
            except FileNotFoundError:
                return None
            except OSError as error:
                log.warning("%s is ignored: %s", self._path, error)
                return None
            except ValidationError as error:
                log.warning("%s is ignored: %s.", self._path, first_mistake(error))
                return None
            self._state = state if state.uri == self._uri else None
        return self._state

    def store(self, table: KnownTable, *, keys: dict[str, str], committed: dict[str, str]) -> None:
        """Remembers the table. Logs only the first failure to write the folder."""
        state = Remembered(uri=self._uri, table=table, keys=keys, committed=committed)
        if state == self.load():
            return
        self._state = state
        try:
            write_private_file(self._path, state.model_dump_json(indent=1).encode())
        except OSError as error:
            if not self._has_warned:
                log.warning("%s cannot be remembered across restarts: %s", self._uri, error)
            self._has_warned = True
