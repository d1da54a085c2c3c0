"""Runs a command that must not outlive whoever started it: `python guard.py <command…>`.

The starter keeps the other end of standard input. When that is closed, by whatever end the starter
comes to, the command is killed. The first line of standard output is the command's process id.
"""

import contextlib
import os
import signal
import subprocess
import sys
import threading


def main() -> int:
    """The command's exit code."""
    command = subprocess.Popen(sys.argv[1:], stdin=subprocess.DEVNULL, stdout=sys.stderr)
    print(command.pid, flush=True)
    threading.Thread(target=_watch, args=[command.pid], daemon=True).start()
    return command.wait()


def _watch(pid: int) -> None:
    sys.stdin.buffer.read()
    # Also if it is stopped. It may have ended just now.
    with contextlib.suppress(ProcessLookupError):
        os.kill(pid, signal.SIGKILL)


if __name__ == "__main__":
    # Ctrl-C in a terminal is for the starter, who decides how the command ends.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    sys.exit(main())
