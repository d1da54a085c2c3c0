"""Files in a real HDFS: names, folders, writers that die, name nodes that do not answer."""

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from socket import socket

import pytest

from dev.hdfs import Hdfs
from hudi_index_service.errors import PermissionDenied, StorageFailed, StorageUnsupported
from hudi_index_service.storage.store import Storage
from tests.hdfs.conftest import SERVICE, configure, name_service
from tests.ports import free_port

# The tests for every kind of store are collected here too, with this folder's fixture `storage`.
from tests.storage.test_storage import (  # noqa: F401
    NAMES,
    paths,
    test_a_full_disk_is_named,
    test_a_root_exists_once_it_has_files,
    test_a_storage_is_pickled_as_its_address,
    test_absent_files_and_folders_are_reported,
    test_create_never_replaces,
    test_delete_ignores_absent_files,
    test_listings_are_limited_to_their_folder,
    test_one_of_many_concurrent_creators_wins,
    test_paths_with_dots_or_empty_segments_are_refused,
    test_ranges_are_returned_in_the_requested_order,
    test_ranges_beyond_the_end_of_a_file_are_refused,
    test_replace_replaces,
    test_upload_and_download,
)

FEW_ATTEMPTS = {"dfs.client.failover.max.attempts": "1"}


def test_names_are_taken_literally(storage: Storage) -> None:
    names = [name for name in NAMES if ":" not in name]
    for name in names:
        storage.create(name, name.encode())
    assert paths(storage) == sorted(names)
    assert sorted(storage.folders()) == sorted(name.removesuffix("/x") for name in names)
    for name in names:
        assert storage.read(name) == name.encode()
        assert paths(storage, name.removesuffix("/x")) == [name]
    storage.delete(names)
    assert paths(storage) == []


def test_names_that_hdfs_does_not_allow_are_refused(storage: Storage) -> None:
    with pytest.raises(StorageFailed, match=r"Invalid path name .*a:b"):
        storage.create("p=a:b/x", b"")


def test_a_file_in_place_of_a_folder_is_reported(storage: Storage) -> None:
    storage.create("a", b"")
    with pytest.raises(StorageFailed, match=r"a/b cannot be written: .* \(is not a directory\)\."):
        storage.create("a/b", b"")
    with pytest.raises(FileNotFoundError):
        storage.read("a/b")
    with pytest.raises(FileNotFoundError):
        storage.size("a/b")


def test_large_files_and_many_ranges(storage: Storage, tmp_path: Path) -> None:
    content, target = os.urandom(20_000_000), tmp_path / "copy"
    storage.create("large", content)

    assert storage.read("large") == content
    storage.download("large", target)
    assert target.read_bytes() == content
    ranges = [(at, at + 1000) for at in range(0, len(content) - 1000, 100_000)]
    assert storage.read_ranges("large", ranges) == [content[s:e] for s, e in ranges]


def test_files_outside_a_folder(storage: Storage) -> None:
    for path in ("x", ".hoodie/y", "a/b/z", "a/.hoodie/w"):
        storage.create(path, b"")
    for flat in (True, False):
        outside = storage.files_outside(".hoodie", flat=flat)
        assert sorted(file.path for file in outside) == ["a/.hoodie/w", "a/b/z", "x"]


def test_only_empty_folders_are_deleted(storage: Storage) -> None:
    for path in ("index/a/b/c/x", "index/d/x", "index2/x"):
        storage.create(path, b"")
    storage.delete(["index/a/b/c/x"])

    assert storage.delete_empty_folders("index") == 3
    assert storage.folders("index") == ["index/d"]
    storage.delete(["index/d/x"])
    assert storage.delete_empty_folders("index") == 2
    assert storage.folders() == ["index2"]
    assert storage.delete_empty_folders("absent") == 0


KILLED = """
import sys
from pathlib import Path
from hudi_index_service.storage.store import Storage
Storage(sys.argv[1]).create("a/manifest.json", Path(sys.argv[2]))
"""


def test_killed_creator_leaves_nothing_visible(storage: Storage, tmp_path: Path) -> None:
    content = tmp_path / "content"
    os.mkfifo(content)
    creator = subprocess.Popen([sys.executable, "-c", KILLED, storage.uri, str(content)])
    with content.open("wb") as writing:
        writing.write(bytes(9 * 2**20))  # more than is sent at once
        writing.flush()
        creator.send_signal(signal.SIGKILL)
        creator.wait(60)

    assert paths(storage) == storage.names_in("a") == []
    (left,) = storage.unfinished("")
    assert left.path.startswith("a/manifest.json#")
    storage.create("a/manifest.json", b"whole")
    assert storage.read("a/manifest.json") == b"whole"
    storage.delete([left.path])
    assert storage.unfinished("") == []


def test_failed_creator_leaves_nothing(storage: Storage, tmp_path: Path) -> None:
    storage.create("a", b"first")
    with pytest.raises(FileExistsError):
        storage.create("a", b"second")
    with pytest.raises(StorageFailed):
        storage.upload("b", tmp_path / "absent")
    assert storage.unfinished("") == []
    assert paths(storage) == ["a"]


def test_missing_permissions_have_their_own_error(
    storage: Storage, monkeypatch: pytest.MonkeyPatch
) -> None:
    storage.create("a", b"1")
    monkeypatch.setenv("HADOOP_USER_NAME", "somebody")
    other = Storage(storage.uri)

    assert other.read("a") == b"1"
    for write in (lambda: other.create("b", b""), lambda: other.delete(["a"])):
        with pytest.raises(PermissionDenied, match="cannot be written: Permission denied: user="):
            write()
    assert paths(storage) == ["a"]


def test_name_node_that_is_down() -> None:
    storage = Storage(f"hdfs://127.0.0.1:{free_port()}/t", FEW_ATTEMPTS)
    for call in (lambda: storage.files(), lambda: storage.create("a", b""), storage.root_exists):
        with pytest.raises(StorageFailed, match="HDFS cannot be reached: Connection refused") as it:
            call()
        assert "name node is running" in it.value.remedy


def test_name_node_that_does_not_answer(storage: Storage, hdfs: Hdfs) -> None:
    storage.create("a", b"1")
    impatient = Storage(storage.uri, {"dfs.client.socket-timeout": "2000"})
    assert impatient.read("a") == b"1"
    hdfs.freeze()
    try:
        for call in (lambda: impatient.read("a"), lambda: impatient.create("b", b"")):
            with pytest.raises(StorageFailed, match=r"does not answer within 2 s") as it:
                call()
            assert "name node is running" in it.value.remedy
    finally:
        hdfs.thaw()
    assert storage.read("a") == impatient.read("a") == b"1"


@pytest.mark.parametrize(
    ("service", "options", "message", "remedy"),
    [
        ("unknown", {}, "No NameNode hosts found", "name service of HADOOP_CONF_DIR"),
        ("", {}, r"No fs\.defaultFS setting found", "name service of HADOOP_CONF_DIR"),
        ("x:1", {"dfs.client.socket-timeout": "1s"}, "is '1s', not a number of millis", ""),
    ],
)
def test_wrong_locations_and_options_are_refused(
    service: str, options: dict[str, str], message: str, remedy: str
) -> None:
    with pytest.raises(StorageFailed, match=message) as refused:
        Storage(f"hdfs://{service}/t", options).files()
    assert remedy in refused.value.remedy


@pytest.fixture
def deaf_port() -> Iterator[int]:
    """A port that does not even refuse connections, as if its host were switched off."""
    with socket() as full, ExitStack() as waiting:
        full.bind(("127.0.0.1", 0))
        full.listen(0)
        for _ in range(3):
            client = waiting.enter_context(socket())
            client.setblocking(False)
            client.connect_ex(full.getsockname())
        yield full.getsockname()[1]


def test_name_service_with_name_nodes_that_are_down_switched_off_or_waiting(
    storage: Storage, hdfs: Hdfs, deaf_port: int
) -> None:
    storage.create("a", b"1")
    path = storage.uri.removeprefix(hdfs.uri)
    ports = (free_port(), deaf_port, hdfs.standby, hdfs.port)
    options = name_service(*(f"127.0.0.1:{port}" for port in ports))
    same = Storage(f"hdfs://{SERVICE}{path}", options)
    assert same.read("a") == b"1"
    same.create("b", b"2")
    assert paths(storage) == paths(same) == ["a", "b"]


def test_configuration_files_name_the_service(
    storage: Storage,
    hdfs: Hdfs,
    deaf_port: int,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    storage.create("a", b"1")
    path = storage.uri.removeprefix(hdfs.uri)
    service = name_service(f"127.0.0.1:{deaf_port}", f"127.0.0.1:{hdfs.port}")
    options = {"fs.defaultFS": f"hdfs://{SERVICE}", **service}
    configure(monkeypatch, tmp_path / "core-site.xml", options)

    for uri in (f"hdfs://{SERVICE}{path}", f"hdfs://{path}", f"hdfs:{path}"):
        assert Storage(uri).read("a") == b"1"


def test_missing_package_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delitem(sys.modules, "hudi_index_service.storage.hdfs", raising=False)
    monkeypatch.setitem(sys.modules, "hdfs_native", None)
    with pytest.raises(StorageUnsupported, match="the package hdfs_native is not installed") as it:
        Storage("hdfs://nn:8020/t").files()
    assert "hudi-index-service[hdfs]" in it.value.remedy
