"""The files of deploy/ agree with the service, by checks that need no tool.

``python -m tests.deploy.test_shipped`` writes the fleet's part of the chart's schema of values.
"""

import configparser
import json
import re
from pathlib import Path
from typing import Any

import jsonschema
import pytest
import yaml

import hudi_index_service
from hudi_index_service.config import Settings
from hudi_index_service.files import FLEET_SCHEMA
from hudi_index_service.fleet.builds.process import Limits
from hudi_index_service.fleet.policies.file import read_fleet_file
from hudi_index_service.fleet.service import DRAIN_SECONDS
from hudi_index_service.fleet.web.queries import LIMITS as QUERIES
from tests.deploy.chart import CHART, DEPLOY, SCENARIOS, values_of
from tests.programs import ROOT

VALUES_SCHEMA = CHART / "values.schema.json"

QUERY_SECONDS = 40
"""A query's own 30 s, and 10 s for its process to start (`Queries`)."""
STOP_SECONDS = DRAIN_SECONDS + Limits().grace_seconds + QUERY_SECONDS
SUPERVISOR_MIB = 1024

VALUES: dict[str, Any] = yaml.safe_load((CHART / "values.yaml").read_text())


def with_fleet(schema: dict[str, Any]) -> dict[str, Any]:
    """The schema of values with that of the fleet file, whose definitions move to its top."""
    fleet = json.loads(FLEET_SCHEMA.read_text())
    del fleet["$schema"]
    definitions = fleet.pop("$defs")
    return {
        **schema,
        "properties": {**schema["properties"], "fleet": fleet},
        "$defs": definitions,
    }


def schema_of_values() -> dict[str, Any]:
    return dict(json.loads(VALUES_SCHEMA.read_text()))


def unit() -> configparser.SectionProxy:
    """The section Service of the systemd unit; of a key that comes again, the last line."""
    parser = configparser.ConfigParser(strict=False, interpolation=None)
    parser.optionxform = str  # type: ignore[assignment,method-assign]
    parser.read(DEPLOY / "systemd" / "hudi-index.service")
    return parser["Service"]


def compose() -> dict[str, Any]:
    return dict(yaml.safe_load((DEPLOY / "compose" / "compose.yaml").read_text())["services"])


def needed_mib(slots: int) -> int:
    """What the service with all its processes may take."""
    queries = QUERIES.slots * QUERIES.memory_mb
    return SUPERVISOR_MIB + queries + slots * Limits().memory_mb


def test_the_values_have_the_schema_of_the_fleet_file() -> None:
    schema = schema_of_values()
    assert schema == with_fleet(schema), "run python -m tests.deploy.test_shipped"


@pytest.mark.parametrize("scenario", SCENARIOS, ids=lambda each: each.stem)
def test_each_scenario_is_valid(scenario: Path) -> None:
    jsonschema.Draft202012Validator(schema_of_values()).validate(values_of(scenario))


def test_the_schema_knows_every_value() -> None:
    known = schema_of_values()["properties"]
    assert VALUES.keys() == known.keys() - {"global"}
    for name in ("image", "memory", "state", "cache", "networkPolicy", "service"):
        assert VALUES[name].keys() == known[name]["properties"].keys()


def test_the_default_fleet_is_valid(tmp_path: Path) -> None:
    file = tmp_path / "fleet.yaml"
    file.write_text(yaml.safe_dump(VALUES["fleet"]))
    assert read_fleet_file(file).groups == []


def test_memory_is_that_of_the_service_its_queries_and_its_builds() -> None:
    assert VALUES["memory"] == {
        "supervisor": SUPERVISOR_MIB,
        "queries": QUERIES.slots * QUERIES.memory_mb,
        "child": Limits().memory_mb,
    }
    slots = Settings().hook.parallelism
    assert VALUES["slots"] == slots
    assert unit()["MemoryMax"] == f"{needed_mib(slots) // 1024}G"
    assert compose()["hudi-index"]["mem_limit"] == f"{needed_mib(slots) // 1024}g"


def test_there_is_time_for_the_builds_that_run() -> None:
    schema = schema_of_values()["properties"]["terminationGracePeriodSeconds"]
    assert schema["minimum"] >= STOP_SECONDS
    assert VALUES["terminationGracePeriodSeconds"] >= schema["minimum"]
    assert int(unit()["TimeoutStopSec"]) >= STOP_SECONDS
    minutes = re.fullmatch(r"(\d+)m", compose()["hudi-index"]["stop_grace_period"])
    assert minutes is not None
    assert int(minutes[1]) * 60 >= STOP_SECONDS


def test_a_build_that_takes_all_memory_does_not_end_the_service() -> None:
    assert unit()["OOMPolicy"] == "continue"
    assert unit()["KillMode"] == "mixed"


def test_chart_and_package_have_one_version() -> None:
    chart = yaml.safe_load((CHART / "Chart.yaml").read_text())
    assert chart["appVersion"] == hudi_index_service.__version__


def test_image_and_chart_have_the_same_folders() -> None:
    """The image's variables come before the chart's settings."""
    image = (DEPLOY / "docker" / "Dockerfile").read_text()
    chart = (CHART / "templates" / "_helpers.tpl").read_text()
    folders = re.findall(r"HUDI_INDEX_(\w+_FOLDER)=(\S+)", image)
    assert [name for name, _ in folders] == ["STATE_FOLDER", "CACHE_FOLDER"]
    for name, path in folders:
        assert f'"{name.lower()}" "{path}"' in chart


def test_the_chart_ships_the_alerts_and_the_dashboard() -> None:
    for name, file in (
        ("alerts.yaml", "prometheus/alerts.yaml"),
        ("dashboard.json", "grafana/dashboard.json"),
    ):
        assert (CHART / "files" / name).resolve() == ROOT / "configs" / file


if __name__ == "__main__":
    VALUES_SCHEMA.write_text(json.dumps(with_fleet(schema_of_values()), indent=2) + "\n")
