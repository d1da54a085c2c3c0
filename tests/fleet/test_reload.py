"""A running service notices when its fleet file changes, and keeps its fleet if that is wrong."""

from pathlib import Path

import pytest

from hudi_index_service.errors import FleetFileInvalid
from hudi_index_service.fleet.policies.file import FleetFileWatcher


def text(owner: str) -> str:
    return f"version: 1\ndefaults: {{owner: {owner}}}\n"


class ConfigMap:
    """A volume as Kubernetes makes one: ``fleet.yaml`` → ``..data/fleet.yaml``, and ``..data`` → a
    folder with a time in its name. It changes by a rename over ``..data``."""

    def __init__(self, folder: Path, content: str) -> None:
        self._folder, self._number = folder, 0
        self.file = folder / "fleet.yaml"
        self.update(content)
        self.file.symlink_to("..data/fleet.yaml")

    def update(self, content: str) -> None:
        self._number += 1
        name = f"..2026_11_29_04_40_{self._number:02}.123"
        (self._folder / name).mkdir()
        (self._folder / name / "fleet.yaml").write_text(content)
        data, new = self._folder / "..data", self._folder / "..data_tmp"
        old = data.resolve() if data.is_symlink() else None
        new.symlink_to(name)
        new.replace(data)
        if old is not None:
            (old / "fleet.yaml").unlink()
            old.rmdir()


def test_kubernetes_swaps_a_link(tmp_path: Path) -> None:
    volume = ConfigMap(tmp_path, text("a"))
    watcher = FleetFileWatcher(volume.file)
    assert watcher.file.defaults.owner == "a"
    assert not watcher.look()

    volume.update(text("b"))
    assert watcher.look()
    assert watcher.file.defaults.owner == "b"

    volume.update(text("b"))  # another folder with the same content
    before = watcher.file
    assert not watcher.look()
    assert watcher.file is before


def test_a_wrong_file_leaves_the_fleet_and_is_told_once(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    path = tmp_path / "fleet.yaml"
    path.write_text(text("a"))
    watcher = FleetFileWatcher(path)

    path.write_text("version: 1\ngruops: []\n")
    for _ in range(2):
        assert not watcher.look()
    assert watcher.file.defaults.owner == "a"
    assert watcher.error is not None
    assert watcher.error.mistakes == ("line 2: gruops: unknown key. Did you mean groups?",)
    assert caplog.text.count("The fleet stays as it was") == 1

    path.unlink()
    assert not watcher.look()
    assert "cannot be read" in watcher.error.message

    path.write_text(text("a"))  # corrected: the same fleet as before
    assert not watcher.look()
    assert watcher.error is None


def test_a_service_does_not_begin_with_a_wrong_file(tmp_path: Path) -> None:
    with pytest.raises(FleetFileInvalid):
        FleetFileWatcher(tmp_path / "none")
