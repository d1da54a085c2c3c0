"""What the sources of a fleet file had when they were last looked up, in a file below the state
folder: a service that starts while a catalog is down keeps the catalog's tables."""

import hashlib
import json
import logging
from collections.abc import Mapping
from dataclasses import astuple
from pathlib import Path

from hudi_index_service.fleet.policies.sources import Place

log = logging.getLogger(__name__)

Found = Mapping[str, tuple[Place, ...]]
"""Source → its tables."""


class FoundBefore:
    """The file for one fleet file. Not for several threads at once.

    Args:
        folder: The folder of the file.
        fleet_file: The fleet file, whose sources these are.
    """

    def __init__(self, folder: Path, fleet_file: Path) -> None:
        name = hashlib.sha256(str(fleet_file.absolute()).encode()).hexdigest()[:16]
        self._path = folder / f"sources-{name}.json"
        self._written: Found = {}
        self._failing = ""

    def read(self) -> Found:
        """What the file has; nothing if there is none, or it cannot be read."""
        try:
            content = json.loads(self._path.read_bytes())
            self._written = {
                source: tuple(Place(*place) for place in places)
                for source, places in content.items()
            }
        except FileNotFoundError:
            pass
        except (AttributeError, OSError, TypeError, ValueError) as error:
            log.warning("%s cannot be read; it is left out: %s", self._path, error)
        return self._written

    def write(self, found: Found) -> None:
        """Replaces what the file has. If that fails, it is logged, once for each reason."""
        if found == self._written:
            return
        content = {source: [astuple(place) for place in places] for source, places in found.items()}
        new = self._path.with_suffix(".new")
        try:
            self._path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            new.write_text(json.dumps(content))
            new.replace(self._path)
        except OSError as error:
            if self._failing != (reason := str(error)):
                log.warning("What catalogs have is kept in memory alone: %s", reason)
            self._failing = reason
            return
        self._written, self._failing = dict(found), ""
