"""`python -m dev.hdfs`: an HDFS until Ctrl-C, its data in a temporary folder."""

from __future__ import annotations

from dev.daemon import run_until_interrupted
from dev.hdfs.server import running_hdfs


def main() -> None:
    """Starts it, prints where it is, and waits for Ctrl-C or SIGTERM."""
    run_until_interrupted(running_hdfs(), lambda hdfs: f"{hdfs.uri}, in {hdfs.folder}")


if __name__ == "__main__":
    main()
