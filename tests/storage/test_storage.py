"""The files below a root: the same behavior in local folders and in object stores (memory)."""

import os
import pickle
import uuid
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from time import time
from typing import TYPE_CHECKING

import pytest

from hudi_index_service.errors import StorageFailed, StorageUnsupported
from hudi_index_service.storage.store import Storage, StoredFile, normalize_uri, requests_made
from tests.at_once import at_once
from tests.programs import lines_of

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.fast


@pytest.fixture(params=["local", "memory"])
def storage(request: pytest.FixtureRequest, tmp_path: Path) -> Storage:
    uri = tmp_path if request.param == "local" else f"memory://{uuid.uuid4().hex}"
    return Storage(uri)


def paths(storage: Storage, prefix: str = "") -> list[str]:
    return sorted(file.path for file in storage.files(prefix))


def test_create_never_replaces(storage: Storage) -> None:
    storage.create("a/b.json", b"first")
    with pytest.raises(FileExistsError, match=r"a/b\.json"):
        storage.create("a/b.json", b"second")
    assert storage.read("a/b.json") == b"first"


def test_one_of_many_concurrent_creators_wins(storage: Storage) -> None:
    def wins(number: int) -> bool:
        try:
            storage.create("manifest", str(number).encode())
        except FileExistsError:
            return False
        return True

    won = at_once(*(partial(wins, number) for number in range(8)))
    assert won.count(True) == 1
    assert storage.read("manifest") == str(won.index(True)).encode()


def test_replace_replaces(storage: Storage) -> None:
    storage.replace("heartbeat", b"1")
    storage.replace("heartbeat", b"22")
    assert storage.read("heartbeat") == b"22"


def test_upload_and_download(storage: Storage, tmp_path: Path) -> None:
    source, target = tmp_path / "source", tmp_path / "target"
    content = os.urandom(11 * 1024 * 1024)  # more than one part
    source.write_bytes(content)

    storage.upload("deep/er/data.pack", source)
    storage.download("deep/er/data.pack", target)

    assert target.read_bytes() == content
    assert storage.size("deep/er/data.pack") == len(content)
    assert storage.io.bytes_read == len(content)


def test_a_full_disk_is_named(storage: Storage) -> None:
    storage.create("f", b"content")
    with pytest.raises(StorageFailed, match="/dev/full cannot be written: No space left on device"):
        storage.download("f", Path("/dev/full"))


def test_ranges_are_returned_in_the_requested_order(storage: Storage) -> None:
    storage.create("f", bytes(range(100)))
    ranges = [(90, 100), (0, 1), (50, 60), (55, 57)]

    buffers = storage.read_ranges("f", ranges)

    assert [bytes(each) for each in buffers] == [bytes(range(100))[s:e] for s, e in ranges]
    assert storage.io.bytes_read == sum(e - s for s, e in ranges)
    assert storage.read_ranges("f", []) == []


@pytest.mark.parametrize(
    "ranges", [[(0, 11)], [(10, 11)], [(20, 30)], [(0, 1), (20, 30)], [(9, 12), (50, 51)]]
)
def test_ranges_beyond_the_end_of_a_file_are_refused(
    storage: Storage, ranges: list[tuple[int, int]]
) -> None:
    storage.create("f", b"0123456789")
    with pytest.raises(StorageFailed, match=r"/f\b"):
        storage.read_ranges("f", ranges)


def test_absent_files_and_folders_are_reported(storage: Storage, tmp_path: Path) -> None:
    storage.create("folder/file", b"")
    for path in ("absent", "absent/file", "folder"):
        with pytest.raises(FileNotFoundError):
            storage.read(path)
        with pytest.raises(FileNotFoundError):
            storage.size(path)
        with pytest.raises(FileNotFoundError):
            storage.read_ranges(path, [(0, 1)])
        with pytest.raises(FileNotFoundError):
            storage.download(path, tmp_path / "target")
    assert storage.files("absent") == []
    assert storage.files_in("absent") == []
    assert storage.names_in("absent") == storage.names_in("folder/file") == []
    assert storage.folders("absent") == []


def test_listings_are_limited_to_their_folder(storage: Storage) -> None:
    for path in ("x", "a/x", "a/b/x", "a/b/y", "ab/x"):
        storage.create(path, path.encode())

    assert paths(storage) == ["a/b/x", "a/b/y", "a/x", "ab/x", "x"]
    assert paths(storage, "a") == ["a/b/x", "a/b/y", "a/x"]
    assert sorted(file.path for file in storage.files_in("a")) == ["a/x"]
    assert sorted(file.path for file in storage.files_in()) == ["x"]
    assert sorted(storage.names_in("a")) == sorted(storage.names_in("")) == ["x"]
    assert sorted(storage.folders()) == ["a", "ab"]
    assert storage.folders("a") == ["a/b"]
    (file,) = storage.files("ab")
    assert file.size == 4
    assert abs(file.modified - time()) < 600


def test_delete_ignores_absent_files(storage: Storage) -> None:
    storage.create("a/x", b"")
    storage.create("a/y", b"")
    storage.delete(["a/x", "absent", "absent/too"])
    assert paths(storage) == ["a/y"]


# Names as Hudi writes them (URL-encoded partition values), and harder ones.
NAMES = [
    "dt=2026-01-01 10%3A00%3A00/x", "p=ü日本/x", "p=a#b/x", "p=a:b/x", "p=a?b*[c]/x", "p=%/x",
    "p=%2F/x", "p=100%25/x", "p=~^|/x", "p='\"/x", "p=a b/x", "p=a+b/x", ".hidden/x", "p=a\\b/x",
]  # fmt: skip


@pytest.mark.parametrize("name", NAMES)
def test_names_are_taken_literally(storage: Storage, name: str) -> None:
    storage.create(name, b"content")
    assert paths(storage) == [name]
    assert storage.read(name) == b"content"
    assert paths(storage, name.rsplit("/", 1)[0]) == [name]
    assert storage.folders() == [name.rsplit("/", 1)[0]]
    if storage.is_local:
        assert storage.local_path(name).read_bytes() == b"content"
    storage.delete([name])
    assert paths(storage) == []


@pytest.mark.parametrize("path", ["../x", "a/../x", "a//x", "./x"])
def test_paths_with_dots_or_empty_segments_are_refused(storage: Storage, path: str) -> None:
    with pytest.raises(StorageFailed, match="cannot be requested"):
        storage.create(path, b"")
    with pytest.raises(StorageFailed, match="cannot be requested"):
        storage.read(path)


@pytest.mark.parametrize("name", ["a b", "a%20b", "ü", "a#b", "a?b", "a:b"])
def test_roots_are_taken_literally(tmp_path: Path, name: str) -> None:
    root = tmp_path / name
    root.mkdir()
    for uri in (root, f"{root}/", f"file:{root}", f"file://{root}"):
        storage = Storage(uri)
        storage.replace("x", b"content")
        assert (root / "x").read_bytes() == b"content"
        assert paths(storage) == ["x"]


@pytest.mark.parametrize(
    ("uri", "normal"),
    [
        ("/data/t", "/data/t"),
        ("/data/t/", "/data/t"),
        ("/data//t", "/data/t"),
        ("file:/data/t", "/data/t"),
        ("file:///data/t", "/data/t"),
        ("file:///data/t/", "/data/t"),
        ("/data/a b", "/data/a b"),
        ("file:/data/a b", "/data/a b"),
        ("file:/data/a%20b", "/data/a%20b"),
        ("/data/a%20b", "/data/a%20b"),
        ("/data/a:b", "/data/a:b"),
        (Path("/data/t"), "/data/t"),
        ("s3://bucket/t", "s3://bucket/t"),
        ("s3a://bucket/t/", "s3://bucket/t"),
        ("s3n://bucket/t", "s3://bucket/t"),
        ("gcs://bucket/t", "gs://bucket/t"),
        ("gs://bucket", "gs://bucket"),
        ("abfss://c@account.dfs.core.windows.net/t/", "abfss://c@account.dfs.core.windows.net/t"),
        ("hdfs://nn:8020/data/t/", "hdfs://nn:8020/data/t"),
        ("hdfs://service//data//a%20b", "hdfs://service/data/a%20b"),
        ("hdfs:///data/t", "hdfs:///data/t"),
        ("hdfs:/data/t", "hdfs:///data/t"),
        ("memory://x/", "memory://x"),
        ("//data/./x/../t", "/data/t"),
        ("s3://bucket//a/./x/..//t//", "s3://bucket/a/t"),
        ("hdfs://nn:8020/a/../data/./t", "hdfs://nn:8020/data/t"),
    ],
)
def test_locations_have_one_normal_spelling(uri: str | Path, normal: str) -> None:
    assert normalize_uri(uri) == normal
    assert normalize_uri(normal) == normal


def test_relative_paths_start_at_the_working_directory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert normalize_uri("t") == str(tmp_path / "t")
    assert normalize_uri("./t/") == str(tmp_path / "t")
    assert normalize_uri("a/b:c") == str(tmp_path / "a" / "b:c")


def test_a_link_and_the_home_folder_name_the_folder_behind_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "t").mkdir()
    (tmp_path / "link").symlink_to("t")
    monkeypatch.setenv("HOME", str(tmp_path))
    assert normalize_uri(tmp_path / "link") == str(tmp_path / "t")
    assert normalize_uri("~/link/") == str(tmp_path / "t")
    assert Storage(tmp_path / "link").uri == Storage(f"file:{tmp_path}/t/../link").uri


@pytest.mark.parametrize(
    "uri",
    [
        "hdfs://nn:8020/",
        "hdfs:/",
        "http://x/t",
        "oss://b/t",
        "s3://",
        "s3:///",
        "s3://b/../c",
        "a\0b",
    ],
)
def test_unsupported_locations_are_refused(uri: str) -> None:
    with pytest.raises(StorageUnsupported, match="STORAGE_UNSUPPORTED"):
        normalize_uri(uri)


@pytest.mark.parametrize("uri", ["file:/x/a%20b", "file:///x/a%20b", "/x/a%20b", "/x/a b"])
def test_local_uris_mean_what_they_mean_to_spark(spark: "SparkSession", uri: str) -> None:
    assert spark._jvm is not None
    hadoop_path = spark._jvm.org.apache.hadoop.fs.Path(uri)
    assert normalize_uri(uri) == hadoop_path.toUri().getPath()


def test_an_absent_root_is_reported(tmp_path: Path) -> None:
    storage = Storage(tmp_path / "absent")
    assert not storage.root_exists()
    with pytest.raises(StorageFailed, match="absent cannot be opened") as failed:
        storage.files()
    assert "\n" not in str(failed.value)


def test_a_root_exists_once_it_has_files(storage: Storage) -> None:
    storage.create("x", b"")
    assert storage.root_exists()
    assert not Storage(f"memory://{uuid.uuid4().hex}").root_exists()


def test_a_storage_is_pickled_as_its_address(storage: Storage) -> None:
    storage.create("x", b"content")
    copy = pickle.loads(pickle.dumps(storage))  # noqa: S301 - our own bytes, as Spark sends them
    assert (copy.uri, copy.options) == (storage.uri, storage.options)
    assert copy.read("x") == b"content"
    assert copy.io.requests == 1


def test_requests_of_all_storages_are_counted_by_operation(storage: Storage) -> None:
    before = requests_made()

    storage.create("x", b"content")
    pickle.loads(pickle.dumps(storage)).read("x")  # noqa: S301 - our own bytes
    storage.size("x")
    storage.files()
    storage.names_in("")
    storage.delete(["x"])

    made = {operation: number - before[operation] for operation, number in requests_made().items()}
    assert made == {"read": 1, "list": 2, "status": 1, "write": 1, "delete": 1}


def test_only_empty_folders_are_deleted(tmp_path: Path) -> None:
    storage = Storage(tmp_path)
    storage.create("index/a/b/c/x", b"")
    storage.create("index/d/x", b"")
    storage.create("index2/x", b"")
    storage.delete(["index/a/b/c/x"])

    assert storage.delete_empty_folders("index") == 3
    assert sorted(path.name for path in (tmp_path / "index").iterdir()) == ["d"]
    storage.delete(["index/d/x"])
    assert storage.delete_empty_folders("index") == 2
    assert [path.name for path in tmp_path.iterdir()] == ["index2"]
    assert storage.delete_empty_folders("absent") == 0
    assert Storage(f"memory://{uuid.uuid4().hex}").delete_empty_folders("index") == 0


def test_files_of_a_killed_writer_are_listed_and_can_be_deleted(tmp_path: Path) -> None:
    storage = Storage(tmp_path)
    storage.create("a/data.pack", b"")
    left = tmp_path / "a" / "data-2.pack#1"
    left.write_bytes(b"half")
    os.utime(left, (1000, 1000))
    assert paths(storage) == ["a/data.pack"], "listings omit it"

    assert storage.unfinished("a") == [StoredFile("a/data-2.pack#1", 4, 1000)]
    assert storage.unfinished("absent") == []
    assert Storage(f"memory://{uuid.uuid4().hex}").unfinished("a") == []
    storage.delete(["a/data-2.pack#1"])
    assert [path.name for path in (tmp_path / "a").iterdir()] == ["data.pack"]


def test_deletion_follows_no_link(tmp_path: Path) -> None:
    (tmp_path / "root").mkdir()
    storage, target = Storage(tmp_path / "root"), tmp_path / "elsewhere"
    storage.create("a/b/x", b"mine")
    (target / "empty").mkdir(parents=True)
    (target / "x").write_bytes(b"another's")
    (target / "y#1").write_bytes(b"another's")
    (tmp_path / "root/a/link").symlink_to(target)
    (tmp_path / "root/a/file").symlink_to(target / "x")
    (tmp_path / "root/link").symlink_to(target)
    assert "a/link/x" in paths(storage), "reading follows links"

    assert storage.linked_folders("a") == ["a/link"]
    assert storage.linked_folders("link/below") == ["link"]
    assert storage.linked_folders("absent") == []
    assert storage.unfinished("a") == []
    for path in ("a/link/x", "link/x", "a/../a/b/x", "/a/b/x"):
        with pytest.raises(StorageFailed):
            storage.delete([path])
    storage.delete(["a/file", "a/b/x"])
    assert storage.delete_empty_folders("a") == 1
    assert storage.delete_empty_folders("link") == 0
    assert sorted(path.name for path in target.iterdir()) == ["empty", "x", "y#1"]
    assert (target / "x").read_bytes() == b"another's"


@pytest.mark.parametrize("link", ["a", "a/b", "a/b/c"])
def test_writing_follows_no_link(tmp_path: Path, link: str) -> None:
    root, target = tmp_path / "root", tmp_path / "elsewhere"
    (root / link).parent.mkdir(parents=True)
    (target / "b/c").mkdir(parents=True)
    (target / "c").mkdir()
    (root / link).symlink_to(target)
    before = sorted(target.rglob("*"))
    storage, large = Storage(root), tmp_path / "large"
    large.write_bytes(b"1" * 5_000_000)

    for write in (
        lambda: storage.create("a/b/c/x", b"1"),
        lambda: storage.replace("a/b/c/x", b"1"),
        lambda: storage.upload("a/b/c/x", large),
        lambda: storage.create("a/b/c/new/x", b"1"),
        lambda: storage.delete(["a/b/c/x"]),
    ):
        with pytest.raises(StorageFailed, match=rf"/{link} is a symbolic link\.") as refused:
            write()
        assert "Remove the link" in refused.value.remedy
    assert sorted(target.rglob("*")) == before


def test_a_link_in_place_of_a_file_is_not_followed(tmp_path: Path) -> None:
    root, secret = tmp_path / "root", tmp_path / "secret"
    root.mkdir()
    secret.write_bytes(b"another's")
    storage = Storage(root)
    for name in ("taken", "heartbeat", "x#1"):
        (root / name).symlink_to(secret)
    (root / "dangling").symlink_to(tmp_path / "absent")

    for name in ("taken", "dangling"):
        with pytest.raises(FileExistsError):
            storage.create(name, b"1")
    storage.replace("heartbeat", b"2")
    storage.create("x", b"3")

    assert storage.read("heartbeat") == b"2"
    assert not (root / "heartbeat").is_symlink(), "the link is replaced, not its target"
    assert storage.read("x") == b"3"
    assert secret.read_bytes() == b"another's"
    assert not (tmp_path / "absent").exists()


def test_a_file_that_does_not_fit_leaves_no_partial_file(tmp_path: Path) -> None:
    """Limits the size of files, which has the effect of a full disk."""
    program = (
        "import resource, sys\n"
        "from hudi_index_service.errors import StorageFailed\n"
        "from hudi_index_service.storage.store import Storage\n"
        "resource.setrlimit(resource.RLIMIT_FSIZE, (100, 100))\n"
        "for write in (Storage.create, Storage.replace):\n"
        "    try:\n"
        "        write(Storage(sys.argv[1]), 'a/x', bytes(1000))\n"
        "    except StorageFailed as error:\n"
        "        print(error.message)\n"
    )
    assert lines_of(program, tmp_path) == [f"{tmp_path}/a/x cannot be written: File too large."] * 2
    assert list((tmp_path / "a").iterdir()) == []


def test_a_file_in_place_of_a_folder_is_reported(tmp_path: Path) -> None:
    storage = Storage(tmp_path)
    storage.create("a", b"")
    with pytest.raises(StorageFailed, match="a/b"):
        storage.create("a/b", b"")


# Run as a user without rights: this process may be root's, to whom file modes do not apply.
AS_NOBODY = """
import os, sys
from hudi_index_service.errors import PermissionDenied
from hudi_index_service.storage.store import Storage
if os.getuid() == 0:
    os.setgroups([]); os.setgid(65534); os.setuid(65534)
storage = Storage(sys.argv[1])
assert storage.read("open") == b"1"
for action in (
    lambda: storage.create("x", b""),
    lambda: storage.create("new/x", b""),
    lambda: storage.replace("open", b""),
    lambda: storage.delete(["open"]),
    lambda: storage.read("secret"),
    lambda: storage.read_ranges("secret", [(0, 1)]),
    lambda: storage.upload("y", __import__("pathlib").Path(sys.argv[1], "open")),
):
    try:
        action()
    except PermissionDenied as error:
        assert sys.argv[1] in str(error) and "\\n" not in str(error), error
        print("read" if f"read access to {sys.argv[1]}/secret" in error.remedy else "write")
"""


@pytest.fixture
def readable_by_all(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A folder that every user may enter and none may write."""
    folder = tmp_path_factory.mktemp("readable")
    modes = {parent: parent.stat().st_mode for parent in (folder, *folder.parents)}
    for parent in modes:
        if parent.owner() == folder.owner() and not modes[parent] & 0o005:
            parent.chmod(modes[parent] | 0o055)
    folder.chmod(0o555)
    yield folder
    for parent, mode in modes.items():
        if parent.stat().st_mode != mode:
            parent.chmod(mode)


def test_missing_permissions_have_their_own_error(readable_by_all: Path) -> None:
    readable_by_all.chmod(0o755)
    (readable_by_all / "open").write_bytes(b"1")
    (readable_by_all / "secret").write_bytes(b"1")
    (readable_by_all / "secret").chmod(0o000)
    readable_by_all.chmod(0o555)

    found = lines_of(AS_NOBODY, readable_by_all)
    assert found == [*["write"] * 4, "read", "read", "write"]


def test_a_remote_storage_has_no_local_paths() -> None:
    with pytest.raises(StorageUnsupported, match="is not a local folder"):
        Storage("memory://x").local_path("a")
