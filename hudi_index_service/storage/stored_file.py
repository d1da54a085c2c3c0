"""A file in a listing."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class StoredFile:
    """A file as a listing shows it: path relative to the storage root, size in bytes, and the
    time of its last change in seconds since the epoch."""

    path: str
    size: int
    modified: float
