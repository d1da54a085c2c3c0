"""Prometheus' `promtool`, which checks the alert rules: the one on PATH, else Debian's, unpacked in
the cache without being installed. `python -m dev.promtool` prints its path.
"""

from __future__ import annotations

import shutil
import subprocess
import tempfile
from pathlib import Path

from dev.paths import cache_folder
from dev.prerequisites import Missing

_PACKAGE = "prometheus"


def find_promtool() -> Path:
    """The program, fetched first if it is missing.

    Raises:
        Missing: it is not on PATH, and this is no Debian whose archive answers.
    """
    if found := shutil.which("promtool"):
        return Path(found)
    program = cache_folder() / "promtool"
    if not program.is_file():
        try:
            _unpack(program)
        except (OSError, subprocess.CalledProcessError) as error:
            said = (getattr(error, "stderr", None) or str(error)).strip()
            why = said.splitlines()[-1] if said else "nothing was said"
            raise Missing(
                "promtool",
                f"it is not on PATH, and could not be fetched ({why})",
                "apt install prometheus",
            ) from error
    return program


def _unpack(program: Path) -> None:
    """Fetches the package with lists of its own, as any user may, and keeps the one program."""
    program.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=program.parent) as scratch:
        lists, unpacked = Path(scratch, "lists"), Path(scratch, "unpacked")
        Path(lists, "partial").mkdir(parents=True)
        own = [f"-oDir::State::Lists={lists}", f"-oDir::Cache={scratch}", "-oAPT::Sandbox::User="]
        _run("apt-get", "-qq", *own, "update", cwd=scratch)
        _run("apt-get", "-qq", *own, "download", _PACKAGE, cwd=scratch)
        (package,) = Path(scratch).glob(f"{_PACKAGE}_*.deb")
        _run("dpkg-deb", "-x", str(package), str(unpacked), cwd=scratch)
        (unpacked / "usr" / "bin" / program.name).replace(program)


def _run(*command: str, cwd: str) -> None:
    subprocess.run(command, cwd=cwd, check=True, capture_output=True, text=True)


if __name__ == "__main__":
    try:
        print(find_promtool())
    except Missing as missing:
        raise SystemExit(str(missing)) from None
