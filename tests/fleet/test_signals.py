"""The alert rules, the dashboard and the docs know the metrics that there are. The docs' tables are
made by ``python -m tests.fleet.test_signals``."""

import json
import re
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from prometheus_client.metrics_core import Metric

from dev.promtool import find_promtool
from hudi_index_service.files import ALERT_RULES, DASHBOARD
from hudi_index_service.fleet.observation import Observation, Refusal, Warmed
from hudi_index_service.fleet.signals.metrics import Metrics
from hudi_index_service.maintain.prewarm import Prewarmed
from hudi_index_service.read.recording import QueryTaken
from tests.fleet.statuses import ago, index, policy, status

PAGE = Path(__file__).parents[2] / "docs" / "guides" / "metrics.md"


def families() -> list[Metric]:
    """All metrics of a service that has done and seen a little of everything."""
    ready = Warmed(ago(0), Prewarmed(entries=8))
    seen = Observation(policy("t"), ago(0), status(index(9, 8, due=1, late=1)), warmed=ready)
    full = Refusal("STORAGE_FAILED", "The disk is full.", "Free space.")
    metrics = Metrics(lambda: [seen], lambda each: (), problems=lambda: [full])
    metrics.close()
    metrics.callback("accepted")
    metrics.query(QueryTaken("index", "coverage", 1.0, 1, 1, 1, 1))
    return list(metrics.registry.collect())


def names() -> set[str]:
    """The names of all series."""
    return {sample.name for family in families() for sample in family.samples}


def expressions() -> dict[str, str]:
    """The dashboard's queries, by panel and letter, as Grafana would ask them."""
    return {
        f"{panel['title']} {target['refId']}": re.sub(
            r"\$(\w+)",
            lambda found: "5m" if found[1] == "__rate_interval" else ".*",
            target["expr"],
        )
        for panel in dashboard()["panels"]
        for target in panel.get("targets", ())
    }


def dashboard() -> dict[str, Any]:
    """The dashboard."""
    content: dict[str, Any] = json.loads(DASHBOARD.read_text())
    return content


def rules() -> list[dict[str, Any]]:
    """The alert rules."""
    groups = yaml.safe_load(ALERT_RULES.read_text())["groups"]
    return [rule for group in groups for rule in group["rules"]]


def named(text: str) -> set[str]:
    """The metrics that a text names."""
    return set(re.findall(r"\bhudi_index_\w+", text))


def test_alerts_ask_for_metrics_that_there_are() -> None:
    for rule in rules():
        assert named(rule["expr"])
        assert named(rule["expr"]) <= names()


def test_the_dashboard_asks_for_metrics_that_there_are() -> None:
    assert expressions()
    for expression in expressions().values():
        assert named(expression)
        assert named(expression) <= names()
    variables = dashboard()["templating"]["list"]
    assert named(json.dumps([each.get("query") for each in variables])) <= names()


def test_the_dashboard_has_three_rows_and_panels_that_do_not_overlap() -> None:
    panels = dashboard()["panels"]
    places = [
        (x, y)
        for place in (panel["gridPos"] for panel in panels)
        for x in range(place["x"], place["x"] + place["w"])
        for y in range(place["y"], place["y"] + place["h"])
    ]

    titles = [panel["title"] for panel in panels if panel["type"] == "row"]
    assert titles == ["Needs attention", "Builds", "Reads"]
    assert len(places) == len(set(places))
    assert max(x for x, _ in places) < 24
    assert len({panel["id"] for panel in panels}) == len(panels)
    assert all(panel.get("description") for panel in panels if panel["type"] != "row")


@pytest.mark.slow
def test_alerts_fire_when_they_must_and_only_then() -> None:
    promtool = find_promtool()
    cases = Path(__file__).with_name("alerts_test.yaml")

    for command in (["check", "rules", ALERT_RULES], ["test", "rules", cases]):
        done = subprocess.run([promtool, *command], capture_output=True, text=True, timeout=120)
        assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.slow
def test_prometheus_understands_the_dashboards_queries(tmp_path: Path) -> None:
    as_rules = [
        {"record": f"panel_{number}", "expr": each, "labels": {"panel": name}}
        for number, (name, each) in enumerate(expressions().items())
    ]
    file = tmp_path / "rules.yaml"
    file.write_text(yaml.safe_dump({"groups": [{"name": "panels", "rules": as_rules}]}))

    done = subprocess.run(
        [find_promtool(), "check", "rules", file], capture_output=True, text=True, timeout=120
    )
    assert done.returncode == 0, done.stdout + done.stderr


def test_every_alert_is_tested() -> None:
    """Each has a case in which it fires, and one in which it does not."""
    cases = yaml.safe_load(Path(__file__).with_name("alerts_test.yaml").read_text())["tests"]
    expected = [
        (each["alertname"], bool(each["exp_alerts"]))
        for case in cases
        for each in case["alert_rule_test"]
    ]

    for rule in rules():
        assert {fires for name, fires in expected if name == rule["alert"]} == {True, False}


def table_of_metrics() -> Iterator[str]:
    """The docs' table of metrics."""
    yield "| metric | type | labels | meaning |"
    yield "| --- | --- | --- | --- |"
    ours = {"catalog", "database", "table", "le"}
    for family in families():
        sample = family.samples[0]
        of_table = "table" in sample.labels
        labels = [f"`{each}`" for each in sample.labels if each not in ours]
        shown = ", ".join([*(["of a table"] if of_table else []), *labels])
        name = sample.name.removesuffix("_bucket")
        kind = "gauge" if family.type == "info" else family.type
        yield f"| `{name}` | {kind} | {shown} | {family.documentation} |"


def table_of_alerts() -> Iterator[str]:
    """The docs' table of alerts."""
    yield "| alert | severity | after | says |"
    yield "| --- | --- | --- | --- |"
    for rule in rules():
        summary = rule["annotations"]["summary"]
        says = re.sub(r"\{\{ \$(?:labels\.)?(\w+) }}", lambda found: found[1].upper(), summary)
        yield f"| {rule['alert']} | {rule['labels']['severity']} | {rule['for']} | {says} |"


def with_tables(text: str) -> str:
    """The page with the tables of the present code."""
    for first, lines in (("metric", table_of_metrics()), ("alert", table_of_alerts())):
        start = text.index(f"| {first} |")
        text = text[:start] + "\n".join(lines) + text[text.index("\n\n", start) :]
    return text


def test_the_docs_list_the_metrics_and_alerts() -> None:
    assert PAGE.read_text() == with_tables(PAGE.read_text()), "python -m tests.fleet.test_signals"


if __name__ == "__main__":
    PAGE.write_text(with_tables(PAGE.read_text()))
