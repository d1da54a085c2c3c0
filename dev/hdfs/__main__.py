"""`python -m dev.hdfs`: an HDFS until Ctrl-C, its data in a temporary folder."""

from __future__ import annotations

import signal

from dev.hdfs.server import running_hdfs


def main() -> None:
    """Starts it, prints where it is, and waits for Ctrl-C or SIGTERM."""
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    with running_hdfs() as hdfs:
        print(f"{hdfs.uri}, in {hdfs.folder}. Ctrl-C ends it.", flush=True)
        try:
            signal.pause()
        except KeyboardInterrupt:
            return


if __name__ == "__main__":
    main()
