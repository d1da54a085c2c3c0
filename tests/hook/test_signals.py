"""A signal may arrive at any moment, whatever the main thread is doing."""

from tests.programs import ended

SIGNAL_AT_EVERY_LINE = """
import signal, sys
from hudi_index_service.hook.daemon import stopped_by_signals

def signalled_at(line):
    count = 0

    def trace(frame, event, argument):
        nonlocal count
        count += event == "line"
        if event == "line" and count == line:
            signal.raise_signal(signal.SIGTERM)
        return trace

    with stopped_by_signals() as stop:
        sys.settrace(trace)
        stop.wait(0.001)
        stop.set()
        stop.wait(0)
        stop.is_set()
        sys.settrace(None)
        assert stop.wait(0)
    return line <= count

line = 1
while signalled_at(line):
    line += 1
print(line)
with stopped_by_signals() as stop:
    signal.raise_signal(signal.SIGTERM)
    print(stop.wait(60), flush=True)
    signal.raise_signal(signal.SIGTERM)
    print("still here", flush=True)
"""


def test_a_signal_at_any_line_causes_no_hang_and_a_second_one_has_its_original_effect() -> None:
    done = ended(SIGNAL_AT_EVERY_LINE)
    line, waited = done.stdout.splitlines()
    assert int(line) > 10, "there were lines to interrupt"
    assert (waited, done.returncode) == ("True", -15)


def test_the_wait_can_end_without_a_signal() -> None:
    from hudi_index_service.hook.daemon import stopped_by_signals

    with stopped_by_signals() as stop:
        assert not stop.wait(0.01)
        assert not stop.is_set()
        for _ in range(100_000):
            stop.set()
        assert stop.wait()
