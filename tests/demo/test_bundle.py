"""How the demo comes by Hudi's bundle."""

import sys
from pathlib import Path

import pytest

from dev import jars
from hudi_index_service.config import settings
from hudi_index_service.demo import spark as demo
from hudi_index_service.errors import ConfigInvalid
from hudi_index_service.hudi import bundle
from hudi_index_service.hudi.bundle import BUNDLE_VARIABLE


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty folder for copies, on a machine that does not say where the bundle is."""
    monkeypatch.delenv(BUNDLE_VARIABLE, raising=False)
    monkeypatch.setenv("HUDI_INDEX_CACHE_FOLDER", str(tmp_path))
    settings.cache_clear()
    yield tmp_path
    settings.cache_clear()


@pytest.mark.parametrize("scala", ["2.12", "2.13"])
def test_demo_runs_with_the_release_that_is_tested(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, scala: str
) -> None:
    (tmp_path / "jars").mkdir()
    (tmp_path / "jars" / f"scala-library-{scala}.9.jar").touch()
    monkeypatch.setenv("SPARK_HOME", str(tmp_path))
    pinned, tested = jars.hudi_bundle(scala=scala), bundle.tested_bundle()
    assert (pinned.group, pinned.artifact, pinned.version, pinned.sha256) == (
        tested.group,
        tested.artifact,
        tested.version,
        tested.sha256,
    )


def test_jar_that_was_downloaded_before_is_used(cache: Path) -> None:
    jar = cache / "jars" / jars.hudi_bundle().path().name
    jar.parent.mkdir()
    jar.symlink_to(jars.bundle_path())
    assert demo.hudi_bundle() == jar


def test_without_jgo_the_extra_is_named(cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "jgo.maven", None)
    with pytest.raises(ConfigInvalid, match="jgo") as refused:
        demo.hudi_bundle()
    assert "pip install 'hudi-index-service[demo]'" in str(refused.value.remedies.python)
