"""What callbacks wake, and which tables are known, by every spelling of a base path that Hudi
uses."""

import http.client
from contextlib import closing
from urllib.parse import urlsplit

import pytest

from hudi_index_service import IndexHook
from hudi_index_service.errors import CallbackRefused, ConfigInvalid, StorageUnsupported
from hudi_index_service.hook.allowed_tables import AllowedTables
from hudi_index_service.hook.write_options import CALLBACK_PATH, SECRET_HEADER, SECRET_OPTION
from tests.hook.callbacks import (
    SECRET,
    BlockedBuild,
    callback_of,
    nothing_built,
    post,
    service_callback_of,
)
from tests.programs import awaited


def test_callbacks_of_a_write_and_its_inline_service_wake_one_more_build(listening, tmp_path):
    with BlockedBuild() as build:
        listener = listening(build, tmp_path)
        post(listener.url, callback_of(tmp_path))
        assert build.begun.wait(30)
        for body in (callback_of(tmp_path), service_callback_of(tmp_path)):
            assert post(listener.url, body) == (202, {"status": "accepted"})
        build.released.set()
        assert awaited(lambda: len(build.tables) == 2, 30, 0.01)


def test_failed_build_is_reported_with_code_and_remedy(listening, tmp_path):
    with IndexHook([tmp_path / "none"], wait=30) as hook:
        secret = hook.write_options(tmp_path / "none")[SECRET_OPTION]
        answer = post(hook.url, callback_of(tmp_path / "none"), secret=secret)

    assert answer == (
        200,
        {
            "status": "failed",
            "code": "TABLE_NOT_FOUND",
            "message": f"Nothing is stored at {tmp_path / 'none'}.",
            "remedy": "Check the path: it is the folder that holds .hoodie.",
        },
    )


def begun(listener, header, value):
    """A connection with a request whose body is not sent yet."""
    url = urlsplit(listener.url)
    connection = http.client.HTTPConnection(url.hostname, url.port, timeout=30)
    connection.putrequest("POST", CALLBACK_PATH)
    connection.putheader(SECRET_HEADER, SECRET)
    connection.putheader(header, value)
    connection.endheaders()
    return closing(connection)


def test_interrupted_connection_is_logged_in_one_line(listening, tmp_path, caplog):
    listener = listening(nothing_built, tmp_path, wait=30)
    with begun(listener, "Content-Length", "100") as connection:
        connection.send(b"{")

    assert post(listener.url, callback_of(tmp_path))[0] == 200
    listener.close()
    assert "A connection ended before the body did." in caplog.text
    assert "Traceback" not in caplog.text


def test_full_queue_refuses_and_says_that_nothing_is_lost(listening, tmp_path):
    first, second, third = (tmp_path / name for name in "abc")
    with BlockedBuild() as build:
        listener = listening(build, first, second, third, limits={"queue": 1})
        assert post(listener.url, callback_of(first))[0] == 202
        assert build.begun.wait(30)
        assert post(listener.url, callback_of(second))[0] == 202

        status, answer = post(listener.url, callback_of(third))

    assert (status, answer["message"]) == (503, "1 tables are already waiting.")
    assert answer["remedy"].startswith("Nothing is lost")


@pytest.mark.parametrize(
    ("given", "sent"),
    [
        ("/data/t", "file:/data/t"),
        ("/data/t/", "file:///data/t"),
        ("file:/data/t", "/data/t"),
        ("/data/a b%20c", "file:/data/a b%20c"),
        ("s3a://bucket/t", "s3a://bucket/t/"),
        ("s3://bucket/t", "s3a://bucket/t"),
    ],
)
def test_all_spellings_of_a_table_are_recognized(given, sent):
    tables = AllowedTables([given, "/data/other"])

    assert tables.find(sent) == next(iter(tables))


def test_links_are_followed(tmp_path):
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "real")

    assert AllowedTables([tmp_path / "link"]).find(f"file:{tmp_path}/real") == f"{tmp_path}/real"


@pytest.mark.parametrize("sent", ["/data", "/data/t2", "/data/t/x", "/data/t/../u", "s3://data/t"])
def test_other_paths_are_refused(sent):
    with pytest.raises(CallbackRefused, match="is not one that this hook serves"):
        AllowedTables(["/data/t"]).find(sent)


def test_list_needs_at_least_one_supported_table():
    with pytest.raises(ConfigInvalid, match="no table"):
        AllowedTables([])
    with pytest.raises(StorageUnsupported):
        AllowedTables(["oss://bucket/t"])
