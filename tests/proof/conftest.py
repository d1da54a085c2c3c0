"""Prints, at the end of the test run, what the proof compared."""

import pytest

SUMMARY = pytest.StashKey[list[str]]()


def pytest_configure(config: pytest.Config) -> None:
    config.stash[SUMMARY] = []


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    lines = terminalreporter.config.stash.get(SUMMARY, [])
    if lines:
        terminalreporter.section("index, scan and Spark")
        for line in lines:
            terminalreporter.write_line(line)
