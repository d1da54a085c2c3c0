"""The systemd unit, the Dockerfile and the Compose file, each by the tool that knows its form."""

import shutil
import sys
from pathlib import Path

import pytest
import yaml

from dev.deploy_tools import DeployTools
from dev.promtool import find_promtool
from tests.deploy.chart import DEPLOY
from tests.programs import ROOT, output_of

pytestmark = [pytest.mark.slow, pytest.mark.timeout(1800)]

UNIT = DEPLOY / "systemd" / "hudi-index.service"
COMPOSE = DEPLOY / "compose"


@pytest.fixture
def unit(tmp_path: Path) -> Path:
    """The unit, with this environment's command, since the one that it names is not here."""
    copy = tmp_path / UNIT.name
    command = str(Path(sys.executable).with_name("hudi-index"))
    text = UNIT.read_text().replace("/opt/hudi-index/bin/hudi-index", command)
    assert command in text
    copy.write_text(text)
    return copy


@pytest.fixture
def systemd_analyze() -> str:
    path = shutil.which("systemd-analyze")
    assert path, "systemd-analyze is not on PATH: apt install systemd"
    return path


def test_systemd_takes_the_unit(systemd_analyze: str, unit: Path) -> None:
    assert output_of([systemd_analyze, "verify", "--man=no", unit]) == ""


def test_the_unit_is_confined(systemd_analyze: str, unit: Path) -> None:
    """Its exposure is at most 3 of 10, where a unit without any limit has 9.6."""
    output_of([systemd_analyze, "security", "--offline=true", "--threshold=30", unit])


def test_hadolint_finds_no_fault(tools: DeployTools) -> None:
    assert output_of([tools.hadolint, DEPLOY / "docker" / "Dockerfile"]) == ""


def test_the_compose_file_is_one(tools: DeployTools) -> None:
    text = output_of([tools.compose, "-format", "yaml", "compose.yaml"], cwd=COMPOSE)
    services = yaml.safe_load(text)["services"]
    assert services.keys() == {"hudi-index", "prometheus", "grafana"}
    assert Path(services["hudi-index"]["build"]["context"]) == ROOT


def test_what_compose_mounts_is_in_the_repository() -> None:
    services = yaml.safe_load((COMPOSE / "compose.yaml").read_text())["services"]
    for name in ("prometheus", "grafana"):
        for volume in services[name]["volumes"]:
            assert (COMPOSE / volume.split(":")[0]).exists(), volume


def test_promtool_takes_the_configuration(tmp_path: Path) -> None:
    shutil.copy(COMPOSE / "prometheus.yaml", tmp_path)
    shutil.copy(ROOT / "configs" / "prometheus" / "alerts.yaml", tmp_path)
    token = tmp_path / "metrics.token"
    token.write_text("a token\n")
    file = tmp_path / "prometheus.yaml"
    file.write_text(file.read_text().replace("/run/secrets/metrics-token", str(token)))
    said = output_of([find_promtool(), "check", "config", file])
    assert "SUCCESS: 8 rules found" in said
