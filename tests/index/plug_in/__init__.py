"""Packages with index types of their own, which a test installs into a folder, or does without."""

from collections.abc import Iterator
from contextlib import contextmanager
from importlib.metadata import EntryPoints, entry_points
from pathlib import Path

import pytest

from hudi_index_service.index import factory

COPIED_COLUMNS = (Path(__file__).parent / "copied_columns.py").read_text()


def install(folder: Path, index_type: str, code: str, *, class_name: str = "Plugged") -> None:
    """A package as pip installs it: a module, and an entry point that names a class in it."""
    module = f"plug_in_{index_type}"
    (folder / f"{module}.py").write_text(code)
    info = folder / f"{module}-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {module}\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text(
        f"[hudi_index_service.index_types]\n{index_type} = {module}:{class_name}\n"
    )


@contextmanager
def uninstalled(index_type: str) -> Iterator[None]:
    """Hides the package of an index type from the service in the block."""

    def others(*, group: str) -> EntryPoints:
        return EntryPoints(each for each in entry_points(group=group) if each.name != index_type)

    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(factory, "entry_points", others)
        factory.index_type.cache_clear()
        yield
    factory.index_type.cache_clear()
