"""Messages between the service and its children survive as lines."""

from dataclasses import asdict

import pytest

from hudi_index_service.fleet.builds.messages import (
    Counted,
    Ended,
    Logged,
    Order,
    Progressed,
    line_of,
    message_of,
)
from hudi_index_service.index.metadata.build_records import BuildProgress
from hudi_index_service.read.recording import QueryTaken

PROGRESS = BuildProgress(2, 1, 0, 20, 10, None, 5, False, 0.1, None, None)


@pytest.mark.parametrize(
    "message",
    [
        Order("r", "build", "a\nb", storage_options={"key": "x"}, settings={"build": {"on": []}}),
        Order("r", "build", "/t", spark_above=1, spark_submit=["spark-submit"], traceparent="00"),
        Counted("r", {"read": 3}, [asdict(QueryTaken("scan", "cost", 2.0, 10, 5, 3, 1))]),
        Progressed("r", PROGRESS),
        Logged(20, "logger", "two\nlines \ud800"),
        Ended("r", "failed", code="CODE", retry_seconds=1.5),
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
    assert "canary" not in repr(Order("r", "build", "/a", storage_options={"key": "canary"}))
