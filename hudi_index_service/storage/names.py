"""Names of files below a root: which are refused, and which belong to unfinished writes."""

import re

# `<name>#<number>`, as by obstore's writers and earlier releases.
_UNFINISHED = re.compile(r".+#\d+")


def parts_of(path: str) -> list[str]:
    """The folders on the path to a file, and its name. Raises ValueError if the path is not one
    below a root."""
    parts = path.split("/")
    if any(part in ("", ".", "..") for part in parts):
        raise ValueError(f"{path!r} is not a path below the root")
    return parts


def unfinished_name(name: str, number: int) -> str:
    """The name, or the path, under which a file is written until it is complete. Listings omit it,
    and cleaning removes what a killed writer has left."""
    return f"{name}#{number}"


def is_unfinished(name: str) -> bool:
    """Whether a file name is such a name."""
    return _UNFINISHED.fullmatch(name) is not None
