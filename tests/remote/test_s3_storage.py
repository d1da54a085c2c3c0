"""Storage over the real S3 protocol: what every kind of store does, and what only S3 does."""

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from hudi_index_service.errors import PermissionDenied, StorageFailed
from hudi_index_service.storage.store import Storage
from tests.forked_child import status_of_child
from tests.remote.s3_server import S3Server

# Collected here too, with this file's fixture `storage`.
from tests.storage.test_storage import (  # noqa: F401
    test_absent_files_and_folders_are_reported,
    test_create_never_replaces,
    test_delete_ignores_absent_files,
    test_listings_are_limited_to_their_folder,
    test_names_are_taken_literally,
    test_one_of_many_concurrent_creators_wins,
    test_ranges_are_returned_in_the_requested_order,
    test_ranges_beyond_the_end_of_a_file_are_refused,
    test_replace_replaces,
    test_upload_and_download,
)


@pytest.fixture
def storage(s3: S3Server) -> Storage:
    return Storage(f"s3a://{s3.make_bucket()}/root", s3.options)


def test_large_file_is_uploaded_in_parts(storage: Storage, s3: S3Server, tmp_path: Path) -> None:
    source = tmp_path / "source"
    source.write_bytes(bytes(11 * 1024 * 1024))
    s3.forget()

    storage.upload("data.pack", source)

    assert len([request for request in s3.requests if request.startswith("PUT")]) == 3


def test_listing_that_skips_a_folder(storage: Storage, s3: S3Server, tmp_path: Path) -> None:
    inside = [".hoodie/a", ".hoodie/z/z", ".hoodie/hoodie.properties", ".hoodie/ü"]
    outside = [
        "!x",
        "-/x",
        ".hoodi/x",
        ".hoodie-/x",
        ".hoodie.x",
        ".hoodie0",
        ".hoodiex/y",
        "a/b",
        "ü",
    ]
    local = Storage(tmp_path)
    for store in (storage, local):
        for name in (*inside, *outside):
            store.create(name, b"1")
    s3.forget()

    assert sorted(file.path for file in storage.files_outside(".hoodie")) == sorted(outside)
    assert len(s3.requests) == 2
    for store in (storage, local):
        files = store.files_outside(".hoodie", flat=True)
        assert sorted(file.path for file in files) == sorted(outside)
    assert sorted(file.path for file in local.files_outside(".hoodie")) == sorted(outside)


def test_flat_listing_takes_one_request(storage: Storage, s3: S3Server) -> None:
    for name in ("a", "z", ".hoodie/a", ".hoodie/b/c"):
        storage.create(name, b"1")
    s3.forget()

    files = storage.files_outside(".hoodie", flat=True)
    assert sorted(file.path for file in files) == ["a", "z"]
    assert len(s3.requests) == 1


@pytest.mark.slow
def test_listing_of_several_pages(storage: Storage, s3: S3Server) -> None:
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(lambda number: storage.replace(f"many/{number:04}", b""), range(1100)))
    assert len(storage.files("many")) == len(storage.files_in("many")) == 1100

    s3.forget()
    assert storage.root_exists()
    assert len(s3.requests) == 1, "the first page is enough"


def test_failed_requests_are_retried(storage: Storage, s3: S3Server) -> None:
    s3.failing = 2
    storage.create("x", b"content")
    s3.failing = 2
    assert storage.read("x") == b"content"
    s3.failing = 1
    assert [file.path for file in storage.files()] == ["x"]
    assert s3.failing == 0


def test_denied_access_raises_permission_denied(s3: S3Server, tmp_path: Path) -> None:
    bucket = s3.make_bucket()
    storage = Storage(f"s3://{bucket}/root", s3.options)
    storage.create("open", b"1")
    s3.forbid(bucket, "s3:PutObject", "s3:DeleteObject")
    (tmp_path / "file").write_bytes(b"1")

    assert storage.read("open") == b"1"
    for action in (
        lambda: storage.create("x", b""),
        lambda: storage.replace("open", b""),
        lambda: storage.upload("x", tmp_path / "file"),
        lambda: storage.delete(["open"]),
    ):
        with pytest.raises(PermissionDenied, match=bucket):
            action()
    assert storage.read("open") == b"1"


def test_reading_from_a_missing_bucket_raises(s3: S3Server) -> None:
    storage = Storage("s3://bucket-of-nobody/t", s3.options)
    with pytest.raises(FileNotFoundError):
        storage.read("x")
    with pytest.raises((FileNotFoundError, StorageFailed), match="bucket-of-nobody"):
        storage.files()


def test_connection_options_have_aliases(s3: S3Server) -> None:
    bucket = s3.make_bucket()
    common = {**s3.options, "connect_timeout": "5s", "timeout": "10s"}
    common.pop("allow_http")
    for spelling in ("allow_http", "aws_allow_http", "AWS_ALLOW_HTTP"):
        Storage(f"s3://{bucket}", {**common, spelling: "true"}).replace(spelling, b"1")
    assert len(Storage(f"s3://{bucket}", s3.options).files()) == 3


def test_unknown_option_is_refused_by_name(s3: S3Server) -> None:
    with pytest.raises(StorageFailed, match=r"fs\.s3a\.endpoint"):
        Storage("s3://bucket/t", {**s3.options, "fs.s3a.endpoint": s3.url}).files()


def test_writing_to_a_missing_bucket_raises_and_names_the_store(
    s3: S3Server, tmp_path: Path
) -> None:
    storage = Storage("s3://no-such-bucket/root", s3.options)
    (tmp_path / "local").write_bytes(b"x")
    for call in (
        lambda: storage.create("f", b"x"),
        lambda: storage.replace("f", b"x"),
        lambda: storage.upload("f", tmp_path / "local"),
    ):
        with pytest.raises(StorageFailed, match="the store does not exist"):
            call()
    with pytest.raises(StorageFailed, match="404"):
        storage.files("")


def test_a_child_forked_after_first_use_is_refused_at_once(storage: Storage) -> None:
    storage.create("a", b"first")
    assert status_of_child(lambda: storage.read("a")) == 2
    assert storage.read("a") == b"first", "the parent goes on"
