"""The chart: its own tests, Kubernetes' schemas, and what the service makes of what is rendered."""

import json
import os
from pathlib import Path

import pytest
import yaml

from dev.deploy_tools import KUBERNETES, DeployTools
from hudi_index_service.config import Settings, load_settings
from hudi_index_service.fleet.builds.process import Limits
from hudi_index_service.fleet.policies.file import read_fleet_file
from hudi_index_service.fleet.policies.references import resolved
from hudi_index_service.fleet.policies.sources import Place
from hudi_index_service.fleet.shard import Shard
from tests.deploy.chart import CHART, SCENARIOS, Render, values_of
from tests.deploy.test_shipped import STOP_SECONDS, SUPERVISOR_MIB
from tests.programs import ROOT, Command, output_of

# The tools are made by the first test that needs them.
pytestmark = [pytest.mark.slow, pytest.mark.timeout(1800)]

OWN_SCHEMAS = ROOT / "tests" / "deploy" / "schemas"
each_scenario = pytest.mark.parametrize("scenario", SCENARIOS, ids=lambda each: each.stem)


@each_scenario
def test_helm_finds_no_fault(tools: DeployTools, scenario: Path) -> None:
    for version in KUBERNETES:
        options = ["--strict", "--kube-version", version, "--values", scenario]
        output_of([tools.helm, "lint", *options, CHART])


def test_the_suites_of_the_chart_pass(tools: DeployTools) -> None:
    said = output_of([tools.unittest, "--strict", CHART])
    assert "Tests:" in said


@pytest.mark.parametrize("version", KUBERNETES)
@each_scenario
def test_kubernetes_accepts_each_object(
    tools: DeployTools, render: Render, tmp_path: Path, scenario: Path, version: str
) -> None:
    rendered = render(scenario, kubernetes=version)
    file = tmp_path / "objects.yaml"
    file.write_text(rendered.text)
    summary = json.loads(checked(tools, version, file, "-summary", "-output", "json"))["summary"]
    assert summary == {"valid": len(rendered.objects), "invalid": 0, "errors": 0, "skipped": 0}


def test_the_schemas_find_mistakes(tools: DeployTools, render: Render, tmp_path: Path) -> None:
    monitored = next(each for each in SCENARIOS if each.stem.startswith("monitored"))
    for known, wrong in (("replicas: 1", "replica: 1"), ("authorization:", "authorisation:")):
        text = render(monitored).text
        assert known in text
        file = tmp_path / "objects.yaml"
        file.write_text(text.replace(known, wrong))
        with pytest.raises(AssertionError, match="additional properties"):
            checked(tools, KUBERNETES[-1], file)


@each_scenario
def test_the_rendered_fleet_passes_the_check(
    render: Render, command: Command, tmp_path: Path, scenario: Path
) -> None:
    values, rendered = values_of(scenario), render(scenario)
    if values["existingFleet"]:
        names = [each["metadata"]["name"] for each in rendered.of_kind("ConfigMap")]
        assert not [each for each in names if each.endswith("-fleet")]
        return
    file = tmp_path / "fleet.yaml"
    file.write_text(rendered.config("-fleet")["fleet.yaml"])
    command("fleet", "check", file)
    groups = [each["name"] for each in values["fleet"]["groups"]]
    assert [each.name for each in read_fleet_file(file).groups] == groups


def test_numbers_stay_whole(render: Render, tmp_path: Path) -> None:
    shards = next(each for each in SCENARIOS if each.stem.startswith("shards"))
    file = tmp_path / "fleet.yaml"
    file.write_text(render(shards).config("-fleet")["fleet.yaml"])
    defaults = read_fleet_file(file).defaults
    assert defaults.max_backfill_bytes == 107_374_182_400
    assert defaults.on == ["clustering", "compaction", "commit"]


@each_scenario
def test_the_service_takes_the_rendered_settings(
    render: Render, tmp_path: Path, scenario: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    rendered = render(scenario)
    settings = settings_of(rendered.config("-settings")["service.yaml"], tmp_path, monkeypatch)
    assert settings.web.host == "0.0.0.0"
    for pod in rendered.pods():
        (container,) = pod["containers"]
        mounted = {each["mountPath"] for each in container["volumeMounts"]}
        assert {str(settings.state_folder.parent), str(settings.cache_folder.parent)} <= mounted
        assert container["ports"] == [{"name": "http", "containerPort": settings.web.port}]
        for file in (settings.web.tokens, settings.web.tls_cert, settings.web.tls_key):
            assert file is None or str(file.parent) in mounted


@each_scenario
def test_a_pod_has_memory_and_time_for_its_builds(
    render: Render, tmp_path: Path, scenario: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    rendered = render(scenario)
    settings = settings_of(rendered.config("-settings")["service.yaml"], tmp_path, monkeypatch)
    queries = values_of(scenario)["memory"]["queries"]
    needed = SUPERVISOR_MIB + queries + settings.hook.parallelism * Limits().memory_mb
    for pod in rendered.pods():
        assert pod["containers"][0]["resources"]["limits"]["memory"] == f"{needed}Mi"
        assert pod["terminationGracePeriodSeconds"] >= STOP_SECONDS


def test_another_setting_restarts_the_pod_and_another_fleet_does_not(
    render: Render, tmp_path: Path
) -> None:
    def checksum(text: str) -> str:
        file = tmp_path / "values.yaml"
        file.write_text(text)
        (deployment,) = render(file).of_kind("Deployment")
        return str(deployment["spec"]["template"]["metadata"]["annotations"])

    as_it_comes = checksum("{}")
    assert checksum("fleet: {groups: [{name: a, include: [/a]}]}") == as_it_comes
    assert checksum("settings: {read: {parallelism: 8}}") != as_it_comes
    assert checksum("slots: 3") != as_it_comes


def test_keys_of_a_store_are_read_again(render: Render, tmp_path: Path) -> None:
    secure = next(each for each in SCENARIOS if each.stem.startswith("secure"))
    text = render(secure).config("-fleet")["fleet.yaml"]
    file, key = tmp_path / "fleet.yaml", tmp_path / "secret-key"
    file.write_text(text.replace("/etc/hudi-index/secret", str(tmp_path)))
    (tmp_path / "access-key").write_text("id")
    (group,) = read_fleet_file(file).groups
    policy = read_fleet_file(file).policy(group, Place("s3://lake/logs/a"), "a")
    for rotated in ("first", "second"):
        key.write_text(f"{rotated}\n")
        assert resolved(policy.storage)["secret_access_key"] == rotated


@each_scenario
def test_what_is_mounted_is_renewed(render: Render, scenario: Path) -> None:
    for pod in render(scenario).pods():
        (container,) = pod["containers"]
        names = {each["name"] for each in pod["volumes"]}
        for mount in container["volumeMounts"]:
            assert "subPath" not in mount
            assert mount["name"] in names


def test_each_shard_is_one_of_all(render: Render) -> None:
    shards = next(each for each in SCENARIOS if each.stem.startswith("shards"))
    given = [pod["containers"][0]["args"] for pod in render(shards).pods()]
    numbers = [Shard.parse(args[args.index("--shard") + 1]) for args in given]
    assert numbers == [Shard(1, 3), Shard(2, 3), Shard(3, 3)]


def test_the_chart_is_packaged_with_its_files(tools: DeployTools, tmp_path: Path) -> None:
    output_of([tools.helm, "package", CHART, "--destination", tmp_path])
    (package,) = tmp_path.glob("*.tgz")
    on = {"metrics.rules.enabled": "true", "metrics.dashboard.enabled": "true"}
    options = [option for pair in on.items() for option in ("--set", "=".join(pair))]
    command = [tools.helm, "template", "its-name", package, "--kube-version", KUBERNETES[-1]]
    text = output_of([*command, *options])
    objects = [each for each in yaml.safe_load_all(text) if each]
    (rules,) = (each["spec"] for each in objects if each["kind"] == "PrometheusRule")
    assert rules == yaml.safe_load((ROOT / "configs/prometheus/alerts.yaml").read_text())
    (dashboard,) = (each for each in objects if each["metadata"]["name"].endswith("-dashboard"))
    shipped = (ROOT / "configs/grafana/dashboard.json").read_text()
    assert json.loads(dashboard["data"]["hudi-index.json"]) == json.loads(shipped)


def checked(tools: DeployTools, version: str, file: Path, *options: str) -> str:
    """What kubeconform says of objects, all of which must be valid in that version."""
    folders = (tools.schemas / f"v{version}", OWN_SCHEMAS)
    places = [folder / "{{.ResourceKind}}{{.KindSuffix}}.json" for folder in folders]
    schemas = [option for each in places for option in ("-schema-location", each)]
    return output_of([tools.kubeconform, "-strict", *options, *schemas, file])


def settings_of(text: str, folder: Path, monkeypatch: pytest.MonkeyPatch) -> Settings:
    """The settings of a process that reads this file."""
    file = folder / "service.yaml"
    file.write_text(text)
    for name in [each for each in os.environ if each.startswith("HUDI_INDEX_")]:
        monkeypatch.delenv(name)  # it would come first
    monkeypatch.setenv("HUDI_INDEX_CONFIG", str(file))
    return load_settings()
