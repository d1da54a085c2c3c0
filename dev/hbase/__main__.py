"""`python -m dev.hbase`: an HBase until Ctrl-C, its data in a temporary folder or that named."""

from __future__ import annotations

import signal
import sys
from pathlib import Path

from dev.hbase.server import running_hbase


def main() -> None:
    """Starts it, prints where it is, and waits for Ctrl-C or SIGTERM."""
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    folder = Path(sys.argv[1]).resolve() if len(sys.argv) > 1 else None
    with running_hbase(folder) as hbase:
        print(f"{hbase}\nThrift: {hbase.host}:{hbase.port}. Ctrl-C ends it.", flush=True)
        try:
            signal.pause()
        except KeyboardInterrupt:
            return


if __name__ == "__main__":
    main()
