"""Packages with index types of their own, which a test installs into a folder."""

from pathlib import Path

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
