"""`python -m dev.hbase`: an HBase until Ctrl-C, its data in a temporary folder or that named."""

from __future__ import annotations

import sys
from pathlib import Path

from dev.daemon import run_until_interrupted
from dev.hbase.server import running_hbase


def main() -> None:
    """Starts it, prints where it is, and waits for Ctrl-C or SIGTERM."""
    folder = Path(sys.argv[1]).resolve() if len(sys.argv) > 1 else None
    run_until_interrupted(
        running_hbase(folder), lambda hbase: f"{hbase}\nThrift: {hbase.host}:{hbase.port}"
    )


if __name__ == "__main__":
    main()
