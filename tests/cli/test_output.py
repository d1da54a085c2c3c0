"""What `--output` means: the same for every command, and nothing is truncated. And logs, in which
each event is a line."""

import csv
import json
import logging
import os
import subprocess
import sys
from collections.abc import Iterator
from datetime import date, datetime
from decimal import Decimal
from pathlib import Path

import pyarrow as pa
import pytest
import typer.main
from typer.testing import CliRunner

import hudi_index_service
from hudi_index_service.cli import app
from hudi_index_service.cli.console import EventFormatter, complain, say
from hudi_index_service.cli.output import (
    Format,
    format_of_rows,
    print_report,
    print_rows,
)
from hudi_index_service.row_formats import python_rows
from tests.golden.table import Golden
from tests.indexed import indexed

NAMES = ("id", "text", "list")
ROWS = [(1, "a" * 200, [1, None]), (2, "", {"b": b"\x00"}), (3, None, float("nan"))]

Captured = pytest.CaptureFixture[str]


@pytest.fixture
def terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    """Standard output is a terminal of 80 columns."""
    monkeypatch.setattr("hudi_index_service.cli.output.terminal_width", lambda: 80)


def test_every_command_except_long_running_ones_has_the_output_option() -> None:
    commands = typer.main.get_command(app).commands  # type: ignore[attr-defined]
    long_running = ("serve", "serve-spark", "answer", "watch", "mcp", "demo")
    commands = {name: each for name, each in commands.items() if name != "fleet"}  # a group
    for name, command in commands.items():
        options = [option for each in command.params for option in each.opts]
        assert ("--output" in options) == (name not in long_running), name


def test_version() -> None:
    done = CliRunner().invoke(app, ["--version"])
    assert done.exit_code == 0
    assert done.output == f"hudi-index {hudi_index_service.__version__}\n"


def test_the_default_on_a_terminal_is_text(terminal: None) -> None:
    assert format_of_rows(None) is Format.TEXT


def test_the_default_for_rows_elsewhere_is_json() -> None:
    assert format_of_rows(None) is Format.JSON
    assert format_of_rows(Format.TEXT) is Format.TEXT


def test_rows_as_json_are_one_object_per_line(capsys: Captured) -> None:
    print_rows(Format.JSON, NAMES, ROWS)
    first, second, third = map(json.loads, capsys.readouterr().out.splitlines())
    assert first == {"id": 1, "text": "a" * 200, "list": [1, None]}
    assert second == {"id": 2, "text": "", "list": {"b": "AA=="}}
    assert third == {"id": 3, "text": None, "list": "NaN"}


def test_values_are_those_of_sparks_to_json(capsys: Captured) -> None:
    moment = datetime(2026, 1, 2, 3, 4, 5, 678901)
    batch = pa.record_batch(
        {
            "price": pa.array([Decimal("1.50"), Decimal("1E-18")], pa.decimal128(38, 18)),
            "pairs": pa.array([[("a", 0.1)], []], pa.map_(pa.string(), pa.float32())),
            "at": pa.array([moment, None], pa.timestamp("us", tz="UTC")),
            "wall": pa.array([moment, None], pa.timestamp("us")),
            "inner": pa.array(
                [{"days": [date(2026, 1, 2)], "m": [("k", None)]}, None],
                pa.struct({"days": pa.list_(pa.date32()), "m": pa.map_(pa.string(), pa.int32())}),
            ),
        }
    )
    print_rows(Format.JSON, batch.schema.names, python_rows([batch]))
    assert capsys.readouterr().out.splitlines() == [
        '{"price": 1.500000000000000000, "pairs": {"a": 0.1}, '
        '"at": "2026-01-02T03:04:05.678901Z", "wall": "2026-01-02T03:04:05.678901", '
        '"inner": {"days": ["2026-01-02"], "m": {"k": null}}}',
        '{"price": 1E-18, "pairs": {}, "at": null, "wall": null, "inner": null}',
    ]


def test_rows_as_csv_distinguish_null_from_empty_text(capsys: Captured) -> None:
    print_rows(Format.CSV, NAMES, [*ROWS, (True, 'a,"b"\n', Decimal("1.50"))])
    printed = capsys.readouterr().out
    assert printed.splitlines()[1:4] == [
        f'1,{"a" * 200},"[1, null]"',
        '2,"","{""b"": ""AA==""}"',
        "3,,NaN",
    ]
    *_, last = csv.reader(printed.splitlines(keepends=True))
    assert last == ["true", 'a,"b"\n', "1.50"]


@pytest.mark.parametrize("output", [Format.JSON, Format.CSV])
def test_rows_are_printed_as_they_arrive(output: Format, capsys: Captured) -> None:
    def rows() -> Iterator[tuple[int]]:
        for number in range(3):
            assert str(number - 1) in capsys.readouterr().out or number == 0
            yield (number,)

    print_rows(output, ["n"], rows())


def test_text_is_one_table_as_wide_as_needed(capsys: Captured) -> None:
    print_rows(Format.TEXT, NAMES, ROWS)
    printed = capsys.readouterr().out
    assert f"│ {'a' * 200} │ [1, null]" in printed
    assert "│ 3  │ NULL " in printed
    assert printed.count("┏") == 1
    assert printed.endswith("3 rows\n")


def test_a_terminal_wraps_and_truncates_nothing(terminal: None, capsys: Captured) -> None:
    print_rows(Format.TEXT, NAMES, ROWS)
    printed = capsys.readouterr().out
    assert max(map(len, printed.splitlines())) <= 80
    assert printed.replace("NaN", "").count("a") == 200
    assert "…" not in printed


def test_a_row_of_many_columns_is_a_list_on_a_terminal(terminal: None, capsys: Captured) -> None:
    print_rows(Format.TEXT, [f"column_{n}" for n in range(30)], [["x" * 100] * 30])
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == "--- row 1"
    assert lines[30] == f"column_29  {'x' * 100}"
    assert lines[31] == "1 row"


def test_an_empty_result_is_printed(capsys: Captured) -> None:
    print_rows(Format.TEXT, NAMES, [])
    assert capsys.readouterr().out.endswith("0 rows\n")
    print_rows(Format.CSV, NAMES, [])
    assert capsys.readouterr().out == "id,text,list\n"
    print_rows(Format.JSON, NAMES, [])
    assert capsys.readouterr().out == ""


def test_text_says_that_rows_were_left_out(capsys: Captured) -> None:
    read = []
    print_rows(Format.TEXT, ["n"], ([read.append(n) or n] for n in range(1_000_000)), most=2)
    assert "The first 2 rows; there are more: --limit" in capsys.readouterr().out
    assert len(read) == 3, "it reads only enough to know that there are more"


def test_a_value_cannot_control_the_terminal(capsys: Captured) -> None:
    print_rows(Format.TEXT, ["n"], [["\x1b[31mred\nline[bold]"]])
    assert "\\x1b[31mred\\nline[bold]" in capsys.readouterr().out


NAME = "a\x1b[2J\nb\u009b31m\u2028c\udcff"


@pytest.mark.parametrize("output", [Format.TEXT, Format.JSON, Format.CSV])
def test_a_name_cannot_control_the_terminal(
    output: Format, terminal: None, capsys: Captured
) -> None:
    print_report(output, {"path": NAME}, [f"{NAME} removed."], ["path"], [{"path": NAME}])
    print_rows(output, [NAME], [[NAME]])
    say(f"{NAME} removed.")
    complain(f"{NAME} removed.")
    printed, errors = capsys.readouterr()
    for control in "\x1b\u009b\udcff":
        assert control not in printed + errors
    assert "b" in printed
    assert not any(line.startswith(("b", "\u2028")) for line in printed.splitlines())
    assert len(errors.splitlines()) == 1


def test_json_keeps_the_name(capsys: Captured) -> None:
    print_rows(Format.JSON, ["path"], [[NAME]])
    assert json.loads(capsys.readouterr().out) == {"path": NAME}


def test_a_report_is_printed_in_every_format(capsys: Captured) -> None:
    report = {"built": 1, "entries": [{"path": "a", "error": None}]}
    for output in (Format.TEXT, Format.JSON, Format.CSV):
        print_report(output, report, ["1 built."], ("path", "error"), report["entries"])
    text, _, rest = capsys.readouterr().out.partition("\n")
    assert text == "1 built."
    assert json.JSONDecoder().raw_decode(rest)[0] == report
    assert rest.endswith("}\npath,error\na,\n")


@pytest.fixture(scope="module")
def umlauts(golden: Golden, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A table in a folder whose name is not ASCII, with such values, and an index."""
    path = golden("awkward_clustered").put(tmp_path_factory.mktemp("umlauts") / "tablü")
    indexed(path, ["name"], using="lucene").close()
    return path


@pytest.mark.parametrize(
    ("locale", "output"),
    [
        ({"LC_ALL": "C"}, "text"),
        ({"LC_ALL": "C.UTF-8", "PYTHONIOENCODING": "ascii"}, "json"),
        ({"LC_ALL": "C.UTF-8", "PYTHONIOENCODING": "latin-1"}, "csv"),
    ],
)
def test_characters_do_not_depend_on_the_locale(
    umlauts: Path, locale: dict[str, str], output: str
) -> None:
    where = "name = 'Ünïcödé' AND place.City = '😀 emoji'"
    command = [sys.executable, "-m", "hudi_index_service", "query", umlauts, where]
    command += ["--columns", "name,place", "--limit", "1", "-o", output]
    environment = {key: each for key, each in os.environ.items() if key[:3] not in ("LC_", "LAN")}
    done = subprocess.run(
        command, env=environment | locale, capture_output=True, timeout=100, check=False
    )
    printed, errors = done.stdout.decode(), done.stderr.decode()
    assert (done.returncode, errors) == (0, ""), "no slice is scanned for want of its index"
    assert "Ünïcödé" in printed
    assert "😀 emoji" in printed


def logged(message: str, *arguments: object) -> logging.LogRecord:
    """An event in the first second of 2026, with the exception being handled, if any."""
    error = sys.exc_info()
    record = logging.LogRecord(
        "hudi_index_service.x", logging.WARNING, "", 0, message, arguments, error
    )
    record.created = 1767225600.5
    return record


def test_an_event_as_text() -> None:
    line = EventFormatter("text").format(logged("%s of %d: %s", "/a b/[1]é", 2, "x" * 200))
    assert line == (
        f"2026-01-01T00:00:00.500Z WARNING hudi_index_service.x: /a b/[1]é of 2: {'x' * 200}"
    )


def test_an_event_with_line_ends_is_one_line() -> None:
    """A name with line ends or escape codes can neither fake an event nor colour the terminal."""
    line = EventFormatter("text").format(logged("a\nb\r\x1b[31m\x85\u2028c"))
    assert line.endswith(r": a\nb\r\x1b[31m\x85\u2028c")


def test_an_event_as_json() -> None:
    assert json.loads(EventFormatter("json").format(logged("a\n%s", "é\udc80"))) == {
        "time": "2026-01-01T00:00:00.500Z",
        "level": "WARNING",
        "logger": "hudi_index_service.x",
        "message": "a\né\udc80",
    }


@pytest.mark.parametrize("kind", ["text", "json"])
def test_a_traceback_is_part_of_the_line(kind: str) -> None:
    try:
        raise ZeroDivisionError("by nothing")
    except ZeroDivisionError:
        line = EventFormatter(kind).format(logged("it failed"))  # type: ignore[arg-type]

    assert len(line.splitlines()) == 1
    assert line.index("it failed") < line.index("Traceback") < line.index("by nothing")
