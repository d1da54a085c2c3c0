"""Where the set-up reads and writes."""

from __future__ import annotations

import os
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
CONSTRAINTS = ROOT / "constraints"
LOGS = ROOT / "build" / "log"


def cache_folder() -> Path:
    """The user's cache of native wheels and jars, shared by all checkouts.

    HUDI_INDEX_CACHE names it; without, it lies where the platform keeps caches
    (XDG_CACHE_HOME, else ~/.cache).
    """
    if named := os.environ.get("HUDI_INDEX_CACHE"):
        return Path(named).expanduser().resolve()
    base = os.environ.get("XDG_CACHE_HOME") or "~/.cache"
    return Path(base).expanduser().resolve() / "hudi-index-service"
