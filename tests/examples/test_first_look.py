"""The notebook in examples/ runs, and shows what its text says."""

from pathlib import Path
from typing import Any

import nbformat
import pytest
from nbclient import NotebookClient

from dev.jars import bundle_path
from hudi_index_service.hudi.bundle import BUNDLE_VARIABLE
from tests.golden.table import Golden

NOTEBOOK = Path(__file__).resolve().parent.parent.parent / "examples" / "first_look.ipynb"


@pytest.fixture
def notebook() -> Any:
    return nbformat.read(NOTEBOOK, as_version=4)


def run(notebook: Any, folder: Path) -> dict[str, Any]:
    """Runs all cells: the last line of each → what it showed, by type."""
    NotebookClient(
        notebook, timeout=240, kernel_name="python3", resources={"metadata": {"path": str(folder)}}
    ).execute()
    return {
        cell.source.splitlines()[-1]: output.data
        for cell in notebook.cells
        for output in cell.get("outputs", ())
        if output.output_type == "execute_result"
    }


def assert_shown(shown: dict[str, Any], *, rows: int) -> None:
    assert "by_msg" in shown["table.status()"]["text/html"]
    assert "Buying car 4" in shown["scan"]["text/html"]
    assert shown["scan.to_pandas()"]["text/html"].count("<td>Buying car 4</td>") >= min(rows, 10)
    assert f"({rows}, 3)" in shown["scan.to_polars()"]["text/html"]
    (by_duckdb,) = (data["text/html"] for line, data in shown.items() if "duckdb.sql" in line)
    assert f"<td>{rows}</td>" in by_duckdb
    explained = shown["scan.explain(analyze=True)"]["text/html"]
    assert " by index: lucene entry" in explained
    assert f"{rows} rows returned" in explained
    assert shown["scan.count()"]["text/plain"] == str(rows)


def test_its_cells_run_on_a_table_that_is_there(
    notebook: Any, golden: Golden, tmp_path: Path
) -> None:
    path = golden("two_hundred_rows").put(tmp_path / "messages")
    written = golden("two_hundred_rows").rows().column("msg").to_pylist()
    (writing,) = (
        cell for cell in notebook.cells if "writes-the-table" in cell.metadata.get("tags", ())
    )
    writing.source = f"path = {str(path)!r}"
    assert_shown(run(notebook, tmp_path), rows=written.count("Buying car 4"))
    assert not list((path / ".hoodie" / ".index").rglob("*.pack"))


@pytest.mark.slow
def test_it_writes_its_own_table(
    notebook: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(BUNDLE_VARIABLE, bundle_path())
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    assert_shown(run(notebook, tmp_path), rows=100)


def test_it_is_stored_without_results(notebook: Any) -> None:
    cells = [cell for cell in notebook.cells if cell.cell_type == "code"]
    assert [cell for cell in cells if cell.outputs or cell.execution_count] == []
