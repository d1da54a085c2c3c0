"""`make bench-fleet`, with few tables."""

import json
from pathlib import Path

import pytest

from benchmarks.fleet.__main__ import main

pytestmark = pytest.mark.slow

PARTS = "idle,instants,killed,week,callbacks,growth"


def test_a_small_fleet_is_measured_and_loses_no_build(tmp_path: Path) -> None:
    few = ["--tables", "4", "--growth", "2", "--polls", "0.01", "--parts", PARTS]
    main([*few, "--scratch", str(tmp_path), "--output", str(tmp_path)])

    result = json.loads((tmp_path / "fleet.json").read_text())
    assert {*PARTS.split(","), "targets", "environment"} <= result.keys()
    assert result["idle"]["with_jvm"] == 0
    assert result["killed"]["lost"] == result["callbacks"]["builds_lost"] == 0
    assert result["callbacks"]["others"] == 0
    assert result["week"] | {"coverage": 1.0, "failed_builds": 0} == result["week"]
    left_out = [each["name"] for each in result["targets"] if each["measured"] is None]
    assert all("fault" in name or "decision" in name for name in left_out)
