"""Each result of a benchmark states its targets and whether they were reached."""

import json
from pathlib import Path

import pytest

from benchmarks.bench_targets import at_least, at_most

RESULTS = Path(__file__).parents[2] / "benchmarks" / "results"


@pytest.mark.parametrize("path", sorted(RESULTS.glob("*.json")), ids=lambda path: path.stem)
def test_targets_are_stated(path: Path) -> None:
    targets = json.loads(path.read_text())["targets"]

    assert targets
    for each in targets:
        words, bound = each["wanted"].rsplit(" ", 1)
        target = {"at most": at_most, "at least": at_least}[words]
        assert target(each["name"], float(bound), each["measured"]) == each


def test_missing_measurement_does_not_reach_its_target() -> None:
    assert not at_most("ms", 5, None)["reached"]
    assert not at_least("times as fast", 5, None)["reached"]
