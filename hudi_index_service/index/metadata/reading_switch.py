"""The switch by which a table's owner keeps all readers from its indexes.

It is stored beside the definitions, which every query lists anyway, as immutable, numbered
documents ``reading-switch-000N.json``. The highest number counts. The - keeps its name apart from
those of indexes, so that older releases ignore it.
"""

import logging
from collections.abc import Mapping
from datetime import UTC, datetime
from functools import partial
from typing import Annotated, ClassVar

from pydantic import Field

from hudi_index_service.errors import EntryInvalid, SnapshotChanged
from hudi_index_service.index.metadata.documents import (
    Document,
    DocumentCache,
    document_name,
    numbers_of,
)
from hudi_index_service.storage.store import Storage, StoredFile

log = logging.getLogger(__name__)

_STEM = "reading-switch"


class ReadingSwitch(Document):
    """One state of the switch."""

    kind: ClassVar[str] = "switch"

    number: Annotated[int, Field(ge=1)]
    disabled: bool
    created: str


_switches = DocumentCache(ReadingSwitch, capacity=1024)


def is_disabled(storage: Storage, files: Mapping[str, StoredFile]) -> bool:
    """Whether no query may use the table's indexes. True, too, if the newest state cannot be read
    here.

    Args:
        files: The files beside the definitions, by name.

    Raises:
        SnapshotChanged: the newest state was deleted in the meantime.
    """
    numbers = numbers_of(_STEM, files)
    if not numbers:
        return False
    file = files[document_name(_STEM, numbers[0])]
    try:
        switch = _switches.get(
            (storage.uri, file), partial(storage.read, file.path), source=file.path
        )
    except EntryInvalid as error:
        log.warning("No index of %s is used: %s", storage.uri, error.message)
        return True
    except FileNotFoundError as error:
        raise SnapshotChanged(
            f"{file.path} was deleted while it was read.", remedy="Try again."
        ) from error
    return switch.disabled


def next_state(files: Mapping[str, StoredFile], *, disabled: bool) -> tuple[str, bytes]:
    """The file name and content of the switch's next state; `files` as in `is_disabled`."""
    number = max(numbers_of(_STEM, files), default=0) + 1
    created = datetime.now(UTC).isoformat(timespec="milliseconds")
    switch = ReadingSwitch(number=number, disabled=disabled, created=created)
    return document_name(_STEM, number), switch.to_json()
