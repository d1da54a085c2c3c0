"""Programs outside the package, mostly used by slow tests and benchmarks, can be imported."""

from importlib import import_module
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
MODULES = sorted(
    ".".join(path.relative_to(ROOT).with_suffix("").parts)
    for folder in ("tests", "benchmarks", "dev")
    for path in (ROOT / folder).rglob("*.py")
    if not path.name.startswith(("test_", "conftest", "__main__", "bench_lance"))  # not installed
)


@pytest.mark.parametrize("name", MODULES)
def test_module_can_be_imported(name: str) -> None:
    import_module(name.removesuffix(".__init__"))
