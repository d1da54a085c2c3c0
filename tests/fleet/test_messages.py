"""Messages between the service and its children survive as lines."""

from dataclasses import asdict
from pathlib import Path

import pytest

from hudi_index_service.build.strategy import WHOLE_BACKFILL, Budget, Strategy
from hudi_index_service.fleet.builds.messages import (
    Counted,
    Ended,
    Logged,
    Order,
    Progressed,
    line_of,
    message_of,
)
from hudi_index_service.fleet.observation import DefinitionsSeen, Refusal
from hudi_index_service.fleet.policies.policy import DesiredIndex, Prewarm, TablePolicy
from hudi_index_service.fleet.policies.references import FromEnvironment, FromFile
from hudi_index_service.fleet.policies.windows import Window, Windows
from hudi_index_service.index.metadata.build_records import BuildProgress
from hudi_index_service.index.metadata.definitions import Column
from hudi_index_service.read.recording import QueryTaken

PLAIN = TablePolicy("a\nb\udcff", "/a\udcff")
FULL = TablePolicy(
    "t",
    "/t",
    strategy=Strategy.ALL,
    backfill=WHOLE_BACKFILL,
    definitions=(DesiredIndex("by_x", (Column(name="x", options={"key": "1"}),)),),
    windows=Windows("Europe/Berlin", (Window.parse("mon-fri 22:00-06:00"),)),
    budget=Budget(bytes=1, minutes=0.5),
    storage={"file": FromFile(Path("/f")), "env": FromEnvironment("E"), "text": "t"},
    prewarm=Prewarm(("x",)),
    spark_above=1,
    spark_submit=("spark-submit",),
)
REFUSAL = Refusal("CODE", "Why\udcff.", "What to do.")
PROGRESS = BuildProgress(2, 1, 0, 20, 10, None, 5, False, 0.1, None, None)


@pytest.mark.parametrize(
    "message",
    [
        Order("r", "build", PLAIN, storage_options={"key": "x"}, settings={"a": {"b": []}}),
        Order("r", "define", FULL, is_asked=True, plan_id="p", traceparent="00"),
        Counted("r", {"read": 3}, [asdict(QueryTaken("scan", "cost", 2.0, 10, 5, 3, 1))]),
        Progressed("r", PROGRESS),
        Logged(20, "logger", "two\nlines \ud800"),
        Ended("r", "failed", REFUSAL, retry_seconds=1.5),
        Ended("r", "finished", definitions=DefinitionsSeen(REFUSAL, drift=("a",), plan_bytes=1)),
    ],
)
def test_message_is_a_line(message):
    line = line_of(message)
    assert line.count(b"\n") == 1
    assert message_of(line) == message


@pytest.mark.parametrize("wrong", [b"", b"no JSON", b"[]", b'{"kind": "Order"}', b'{"kind": "No"}'])
def test_other_lines_are_refused(wrong):
    with pytest.raises(ValueError):  # noqa: PT011 - of json too
        message_of(wrong)


def test_order_does_not_show_secrets():
    assert "canary" not in repr(Order("r", "build", PLAIN, storage_options={"key": "canary"}))
