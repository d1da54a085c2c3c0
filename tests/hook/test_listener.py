"""What the listener answers to valid and invalid requests, and which tables it knows, by every
spelling of a base path that Hudi uses."""

import http.client
import json
from contextlib import closing
from urllib.parse import urlsplit

import pytest

from hudi_index_service.errors import CallbackRefused, ConfigInvalid, StorageUnsupported
from hudi_index_service.hook.allowed_tables import AllowedTables
from hudi_index_service.hook.write_options import SECRET_HEADER
from tests.hook.callbacks import (
    SECRET,
    BlockedBuild,
    callback_of,
    nothing_built,
    post,
    service_callback_of,
)


@pytest.mark.parametrize("wait", [0, 0.2])
def test_answer_waits_no_longer_than_configured(listening, tmp_path, wait):
    with BlockedBuild() as build:
        listener = listening(build, tmp_path, wait=wait)

        assert post(listener, callback_of(tmp_path)) == (202, {"status": "accepted"})
        assert build.begun.wait(30)


@pytest.mark.parametrize("action", [None, "replacecommit", "commit", "logcompaction", "clustering"])
def test_callback_of_a_write_or_a_table_service_wakes_one_build(listening, tmp_path, action):
    tables = []

    def build(table: str):
        tables.append(table)
        return nothing_built(table)

    listener = listening(build, tmp_path, wait=30)
    body = service_callback_of(tmp_path, action) if action else callback_of(tmp_path)
    assert post(listener, body) == (200, {"status": "built", "built": 0, "failed": 0})
    assert tables == [str(tmp_path)]


def test_callbacks_of_a_write_and_its_inline_service_wake_one_more_build(listening, tmp_path):
    with BlockedBuild() as build:
        listener = listening(build, tmp_path)
        post(listener, callback_of(tmp_path))
        assert build.begun.wait(30)
        for body in (callback_of(tmp_path), service_callback_of(tmp_path)):
            assert post(listener, body) == (202, {"status": "accepted"})
        build.released.set()
    listener.close()  # after the last build
    assert len(build.tables) <= 2


def test_failed_build_is_reported_with_code_and_remedy(listening, tmp_path):
    def no_table(table: str):
        from hudi_index_service import open_table

        return open_table(table).build()

    listener = listening(no_table, tmp_path / "none", wait=30)

    assert post(listener, callback_of(tmp_path / "none")) == (
        200,
        {
            "status": "failed",
            "code": "TABLE_NOT_FOUND",
            "message": f"Nothing is stored at {tmp_path / 'none'}.",
            "remedy": "Check the path: it is the folder that holds .hoodie.",
        },
    )


@pytest.mark.parametrize("secret", [None, "", "wrong", f"{SECRET}x", SECRET[:-1]])
def test_wrong_secret_is_refused(listening, tmp_path, secret):
    build = BlockedBuild()
    listener = listening(build, tmp_path)

    assert post(listener, callback_of(tmp_path), secret=secret) == (
        401,
        {
            "code": "CALLBACK_REFUSED",
            "message": f"The header {SECRET_HEADER} is missing or wrong.",
            "remedy": "Write the table with the options from IndexHook.write_options(table).",
        },
    )
    assert build.tables == []


def test_other_table_is_refused(listening, tmp_path):
    build = BlockedBuild()
    listener = listening(build, tmp_path / "mine")

    status, answer = post(listener, callback_of(tmp_path / "mine" / ".." / "other"))

    assert (status, answer["code"]) == (403, "CALLBACK_REFUSED")
    assert "IndexHook([table, ...])" in answer["remedy"]
    assert build.tables == []


@pytest.mark.parametrize("base_path", ["oss://bucket/table", "", "\0", "s3://"])
def test_invalid_base_path_is_refused(listening, tmp_path, base_path):
    listener = listening(nothing_built, tmp_path)

    assert post(listener, json.dumps({"basePath": base_path}).encode())[0] == 403


@pytest.mark.parametrize(
    "body",
    [b"", b"{", b"\xff\xfe", b"[]", b"{}", b'{"basePath": 1}', b"[" * 200_000],
    ids=["empty", "cut", "binary", "list", "no path", "number", "deep"],
)
def test_malformed_body_is_refused(listening, tmp_path, body):
    listener = listening(nothing_built, tmp_path)

    status, answer = post(listener, body)

    assert (status, answer["code"]) == (400, "CALLBACK_REFUSED")
    assert answer["message"] == "The body is not a Hudi commit callback."


def begun(listener, header, value):
    """A connection with a request whose body is not sent yet."""
    url = urlsplit(listener.url)
    connection = http.client.HTTPConnection(url.hostname, url.port, timeout=30)
    connection.putrequest("POST", url.path)
    connection.putheader(SECRET_HEADER, SECRET)
    connection.putheader(header, value)
    connection.endheaders()
    return closing(connection)


@pytest.mark.parametrize(
    ("header", "value", "sent"),
    [
        ("Content-Length", "1001", b""),
        # And never the last chunk.
        ("Transfer-Encoding", "chunked", b"3e9\r\n" + b" " * 1001 + b"\r\n"),
    ],
    ids=["by its content length", "read only up to the limit"],
)
def test_long_body_is_refused(listening, tmp_path, header, value, sent):
    listener = listening(nothing_built, tmp_path, max_body_bytes=1000)
    with begun(listener, header, value) as connection:
        connection.send(sent)
        response = connection.getresponse()
        assert response.status == 413
        assert json.loads(response.read())["message"] == "The body is longer than 1000 bytes."


def test_interrupted_connection_is_logged_in_one_line(listening, tmp_path, caplog):
    listener = listening(nothing_built, tmp_path, wait=30)
    with begun(listener, "Content-Length", "100") as connection:
        connection.send(b"{")

    assert post(listener, callback_of(tmp_path))[0] == 200
    listener.close()
    assert "CALLBACK_REFUSED: The connection ended before the body did." in caplog.text
    assert "Traceback" not in caplog.text


def test_full_queue_refuses_and_says_that_nothing_is_lost(listening, tmp_path):
    first, second, third = (tmp_path / name for name in "abc")
    with BlockedBuild() as build:
        listener = listening(build, first, second, third, queue=1)
        assert post(listener, callback_of(first))[0] == 202
        assert build.begun.wait(30)
        assert post(listener, callback_of(second))[0] == 202

        status, answer = post(listener, callback_of(third))

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
