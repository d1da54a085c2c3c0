"""Mistakes on the command line: each is one line with code and remedy, and an exit status."""

import os
import socket
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from hudi_index_service import config, open_table
from hudi_index_service.storage.disk import Disk
from tests.golden.table import Golden
from tests.mistakes.clear import PYTHON, STATEMENTS, assert_clear
from tests.programs import Command, ended

# A wrong command line → part of the message, part of the remedy.
USAGE = [
    ("qeury {table} id=1", "'qeury'", "Did you mean 'query'?"),
    ("query {table} id=1 --colums id", "--colums", "--columns"),
    ("query {table}", "'WHERE'", "`hudi-index query --help`"),
    ("create {table} x", "Missing argument", "`hudi-index create --help`"),
    ("query {table} id=1 --limit ten", "'--limit'", "valid integer"),
    ("query {table} id=1 --use-index no", "'no' is not one of", "'never'"),
    ("query {table} id=1 -o xml", "'xml' is not one of", "'json'"),
    ("build {table} --strategy some", "'some' is not", "'incremental'"),
    ("build {table} --max-bytes 10MB", "'--max-bytes'", "valid integer"),
    ("serve {table} --port 99999", "'--port'", "65535"),
    ("clean {table} --grace -5", "'--grace'", "greater than or equal to 0"),
    ("sql", "Missing argument", "`hudi-index sql --help`"),
    ("sql x --format xml", "'xml' is not one of", "'csv'"),
    ("verify {table} --sample -2", "'--sample'", "greater than or equal"),
]

# Another one → code, part of the message, part of the remedy. {table} has the index by_amount on
# amount and msg.
MISTAKES = [
    ("sql x --conf a", "CONFIG_INVALID", "'a' is not of the form", "--conf key=value"),
    ("create {table} x msg:analyzer", "USAGE_INVALID", "has no value", "msg:analyzer=VALUE"),
    ("watch {table} --once --interval 5", "USAGE_INVALID", "no second poll", "one of the two"),
    ("--log-level loud show {table}", "CONFIG_INVALID", "'loud'", "Use debug, info"),
    # Tables.
    ("status {folder}/tabel", "TABLE_NOT_FOUND", "/tabel", "Did you mean table?"),
    ("status {folder}/plain", "NOT_A_HUDI_TABLE", "/plain has no", "Give the base path of"),
    ("status {base_file}", "NOT_A_HUDI_TABLE", "is a file", "the Hudi table {table}: give"),
    ("status {partition}", "NOT_A_HUDI_TABLE", "has no .hoodie", "the Hudi table {parts}"),
    ("status {table}/.hoodie", "NOT_A_HUDI_TABLE", "has no", "the Hudi table {table}"),
    ("status s4://bucket/t", "STORAGE_UNSUPPORTED", "s4:// is not", "s3://, gs://"),
    ("status s3://", "STORAGE_UNSUPPORTED", "no bucket", "s3://, gs://"),
    ("status db.messages", "TABLE_NOT_FOUND", "no folder db.messages", "./db.messages"),
    ("status glue://messages", "STORAGE_UNSUPPORTED", "glue://messages", "glue://database."),
    ("status hive://127.0.0.1:1/a.b", "CATALOG_FAILED", "refused", "Check host and port"),
    # Queries.
    ("query {table} amuont=1", "COLUMN_NOT_FOUND", "no column 'amuont'", "amount, and"),
    ("query {table} amount==", "PREDICATE_INVALID", "line 1, column 9", "Spark SQL"),
    ("query {table} (amount=1", "PREDICATE_INVALID", ") expected", "Spark SQL"),
    ("query {table} amount", "PREDICATE_INVALID", "not boolean", "Compare it with a"),
    ("query {table} lenght(msg)=3", "PREDICATE_UNSUPPORTED", "'lenght'", "Compare columns"),
    ("query {table} amount=true", "PREDICATE_UNSUPPORTED", "with true", "`hudi-index sql`"),
    ("query {table} amount=1;x", "PREDICATE_UNSUPPORTED", "More than one", "without ';'"),
    ("query {table} id=1 --limit -3", "CONFIG_INVALID", "limit=-3", "from 0 on"),
    ("query {table} amount=1 --columns id,tss", "COLUMN_NOT_FOUND", "'tss'", "ts, and"),
    ("query {table} amount=1 --columns id,id", "CONFIG_INVALID", "named twice", "once"),
    ("query {table} id=1 --as-of noon", "CONFIG_INVALID", "'noon'", "yyyy-MM-dd"),
    (
        *("query {table} id=1 --as-of 2001-01-01", "TABLE_FEATURE_UNSUPPORTED"),
        *("before the active timeline", "Query a later instant"),
    ),
    (
        *("query {table} id='1' --use-index require", "INDEX_REQUIRED"),
        *("cannot be read through an index", "`hudi-index build <table> --strategy all`"),
    ),
    ("search {table} msg car", "PREDICATE_UNSUPPORTED", "words of `msg`", "hudi-index create"),
    # Definitions.
    ("create {table} by_amount id", "INDEX_EXISTS", "by_amount", "--if-not-exists"),
    ("create {table} by-id id", "INDEX_DEFINITION_INVALID", "'by-id'", "letters, digits"),
    ("create {table} x mgs", "COLUMN_NOT_FOUND", "'mgs'", "msg, and"),
    ("create {table} x id ID", "INDEX_DEFINITION_INVALID", "id twice", "once"),
    ("create {table} x id --using lucine", "INDEX_TYPE_UNKNOWN", "'lucine'", "mean lucene?"),
    ("create {table} x id --include tss", "COLUMN_NOT_FOUND", "'tss'", "ts, and"),
    (
        *("create {table} x msg:analyzer=standrad", "INDEX_DEFINITION_INVALID"),
        *("no analyzer 'standrad'", "Did you mean standard?"),
    ),
    (
        *("create {table} x msg:analyser=standard", "INDEX_DEFINITION_INVALID"),
        *("no column option 'analyser'", "Did you mean analyzer?"),
    ),
    (
        *("create {table} x amount:analyzer=simple", "INDEX_DEFINITION_INVALID"),
        *("only string columns", "Remove the option analyzer"),
    ),
    ("create {nested} x pairs", "COLUMN_NOT_INDEXABLE", "type map", "separate column"),
    ("create {nested} x id --include nested", "COLUMN_NOT_INDEXABLE", "nested", "INCLUDE"),
    ("alter {table} by_amount", "INDEX_DEFINITION_INVALID", "would change", "Name columns"),
    ("alter {table} by_amuont --add ts", "INDEX_NOT_FOUND", "by_amuont", "mean by_amount?"),
    ("alter {table} by_amount --drop ts", "COLUMN_NOT_FOUND", "no column ts", "amount, msg"),
    ("drop {table} by_amuont", "INDEX_NOT_FOUND", "by_amuont", "Did you mean by_amount?"),
    ("drop {table}", "CONFIG_INVALID", "by its name, or", "NAME or --column"),
    ("drop {table} --column ts", "INDEX_NOT_FOUND", "column ts", "`hudi-index show"),
    # Building.
    ("build {table} --instant now", "CONFIG_INVALID", "no completed instant", "requested"),
    ("build {parts} --partition 2027", "CONFIG_INVALID", "'2027'", "2026-01-01"),
    ("build {table} --max-files 0", "CONFIG_INVALID", "files is 0", "above 0"),
    ("build {table} --max-bytes 0", "CONFIG_INVALID", "bytes is 0", "above 0"),
    ("build {table} --max-minutes -1", "CONFIG_INVALID", "minutes is -1", "above 0"),
    ("build {table} --props {folder}/no", "CONFIG_INVALID", "No such file", "Name a prop"),
    ("build {table} --hoodie-conf msg", "CONFIG_INVALID", "'msg'", "key=value"),
    (
        *("build {table} --hoodie-conf hoodie.index.colums=id", "CONFIG_INVALID"),
        *("hoodie.index.colums", "Did you mean hoodie.index.columns?"),
    ),
    (
        *("build {table} --hoodie-conf hoodie.index.strategy=x", "CONFIG_INVALID"),
        *("hoodie.index.strategy=x", "Correct or remove the key hoodie.index.strategy"),
    ),
    ("refresh {table} nothing", "INDEX_NOT_FOUND", "nothing", "`hudi-index show <table>`"),
    ("watch {table} --interval -1", "CONFIG_INVALID", "interval=-1", "more than 0"),
    ("serve {table} --port {taken}", "CONFIG_INVALID", "Address already in use", "--port"),
    ("pack {folder}/x.zip", "CONFIG_INVALID", "x.zip", "ends with .tar.gz"),
    ("pack {folder}/no/x.tgz", "CONFIG_INVALID", "No such file", "existing, writable"),
]

# A variable and its value → part of the message, part of the remedy.
VARIABLES = [
    ("HUDI_INDEX_READ__ENABELD", "false", "no setting read.enabeld", "Did you mean enabled?"),
    ("HUDI_INDEX_RAED__ENABLED", "false", "no section raed", "Did you mean read?"),
    ("HUDI_INDEX_READ_ENABLED", "false", "two underscores", "HUDI_INDEX_READ__ENABLED"),
    ("HUDI_INDEX_READ__ENABLED", "maybe", "read.enabled", "Correct its value"),
    ("HUDI_INDEX_BUILD__PARALLELISM", "0", "greater than 0", "Correct its value"),
    ("HUDI_INDEX_CONFIG", "{folder}/no.yaml", "is not a file", "unset HUDI_INDEX_CONFIG"),
    ("HUDI_INDEX_CONFIG", "{folder}", "is not a file", "unset HUDI_INDEX_CONFIG"),
    ("HUDI_INDEX_CONFIG", "{folder}/key.yaml", "no setting read.enabeld", "mean enabled?"),
    ("HUDI_INDEX_CONFIG", "{folder}/section.yaml", "no setting raed", "Did you mean read?"),
    ("HUDI_INDEX_CONFIG", "{folder}/syntax.yaml", "cannot be read", "as YAML"),
]


@pytest.fixture(scope="module")
def places(golden: Golden, tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, object]]:
    """What the lines above name in braces."""
    folder = tmp_path_factory.mktemp("mistakes")
    table = golden("two_hundred_rows").put(folder / "table")
    parts = golden("two_partitions").put(folder / "parts")
    open_table(table).create_index("by_amount", ["amount", "msg"])
    (folder / "plain").mkdir()
    pq.write_table(pa.table({"a": [1]}), folder / "plain" / "part.parquet")
    (folder / "key.yaml").write_text("read:\n  enabeld: false\n")
    (folder / "section.yaml").write_text("raed:\n  enabled: false\n")
    (folder / "syntax.yaml").write_text("read: [\n")
    with socket.create_server(("127.0.0.1", 0)) as server:
        yield {
            "folder": folder,
            "table": table,
            "parts": parts,
            "nested": golden("nested_types").put(folder / "nested"),
            "base_file": next(table.glob("*.parquet")),
            "partition": next(parts.glob("2026*")),
            "taken": server.getsockname()[1],
        }


@pytest.mark.parametrize(
    ("status", "line", "code", "says", "remedy"),
    [
        *((2, line, "USAGE_INVALID", says, remedy) for line, says, remedy in USAGE),
        *((1, *each) for each in MISTAKES),
    ],
)
def test_a_mistake_is_explained_in_one_line(
    status: int,
    line: str,
    code: str,
    says: str,
    remedy: str,
    places: dict[str, object],
    command: Command,
) -> None:
    arguments = [each.format(**places) for each in line.split(" ")]
    error = command(*arguments, status=status)
    assert_clear(error, code, says, remedy.format(**places), foreign=(PYTHON, STATEMENTS))


@pytest.mark.parametrize(("name", "value", "says", "remedy"), VARIABLES)
def test_a_wrong_setting_is_explained_in_one_line(
    name: str,
    value: str,
    says: str,
    remedy: str,
    places: dict[str, object],
    monkeypatch: pytest.MonkeyPatch,
    command: Command,
) -> None:
    monkeypatch.setenv(name, value.format(**places))
    config.settings.cache_clear()
    try:
        error = command("show", places["table"], status=1)
    finally:
        config.settings.cache_clear()
    assert_clear(error, "CONFIG_INVALID", says, remedy, foreign=(PYTHON, STATEMENTS))


@pytest.mark.parametrize(
    ("error", "code", "says", "remedy"),
    [
        (OSError(28, os.strerror(28)), "STORAGE_FAILED", "No space left on device", "Free space"),
        (PermissionError(13, "Permission denied"), "PERMISSION_DENIED", "ermission", "Give this"),
    ],
)
def test_a_disk_that_refuses_is_explained_in_one_line(
    error: OSError,
    code: str,
    says: str,
    remedy: str,
    places: dict[str, object],
    monkeypatch: pytest.MonkeyPatch,
    command: Command,
) -> None:
    def refuse(*_: object, **__: object) -> None:
        raise error

    monkeypatch.setattr(Disk, "put", refuse)
    line = command("create", places["table"], "x", "id", status=1)
    assert_clear(line, code, says, remedy, foreign=(PYTHON, STATEMENTS))


def test_an_endpoint_without_tls_is_explained_in_one_line(
    monkeypatch: pytest.MonkeyPatch, command: Command
) -> None:
    for name, value in {
        "AWS_ENDPOINT": "http://127.0.0.1:1",
        "AWS_REGION": "eu-west-1",
        "AWS_ACCESS_KEY_ID": "a",
        "AWS_SECRET_ACCESS_KEY": "b",
    }.items():
        monkeypatch.setenv(name, value)
    line = command("status", "s3://bucket/table", status=1)
    expected = ("STORAGE_FAILED", "http:, which is not allowed", "AWS_ALLOW_HTTP=true")
    assert_clear(line, *expected, foreign=(PYTHON, STATEMENTS))


def test_a_wrong_java_home_is_explained_in_one_line(places: dict[str, object]) -> None:
    build = ("build", places["table"], "--strategy", "all")
    done = ended("hudi_index_service", *build, module=True, JAVA_HOME="/nowhere")
    assert done.returncode == 1
    expected = ("NATIVE_MODULE_MISSING", "/nowhere/lib", "set JAVA_HOME to its folder")
    assert_clear(done.stderr, *expected, foreign=(PYTHON, STATEMENTS))


def test_a_question_without_an_answer_is_aborted(
    places: dict[str, object],
    monkeypatch: pytest.MonkeyPatch,
    command: Command,
) -> None:
    monkeypatch.setattr("hudi_index_service.cli.advice.is_terminal", lambda: True)
    with Path(os.devnull).open() as nothing:
        monkeypatch.setattr("sys.stdin", nothing)
        printed = command("init", places["parts"], status=1)
    assert printed.endswith("Aborted.\n")
