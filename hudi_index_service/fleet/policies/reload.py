"""The fleet file of a running service: read again when its content changes."""

import logging
from pathlib import Path

from hudi_index_service.errors import FleetFileInvalid
from hudi_index_service.fleet.policies.file import FleetFile, read_fleet_file

log = logging.getLogger(__name__)


class FleetFileWatcher:
    """Keeps the last valid form of a fleet file. It compares the content, so that it notices a link
    that is led elsewhere, as Kubernetes does with a ConfigMap. Not for several threads at once.

    Args:
        path: The file, or a link to it.

    Raises:
        FleetFileInvalid: the file has mistakes. Later ones raise nothing; see `error`.

    Attributes:
        file: The fleet that holds.
        error: Why the file as it is now is not used; None if it is.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self.file: FleetFile = read_fleet_file(path)
        self.error: FleetFileInvalid | None = None

    def look(self) -> bool:
        """Reads the file again. Returns whether another fleet holds from now on; a wrong file
        leaves the one that holds."""
        try:
            read = read_fleet_file(self._path)
        except FleetFileInvalid as error:
            if self.error is None or self.error.message != error.message:
                log.error("The fleet stays as it was: %s", error)
            self.error = error
            return False
        self.error = None
        if read.digest == self.file.digest:
            return False
        log.info("%s has changed: its new form holds from now on.", self._path)
        self.file = read
        return True
