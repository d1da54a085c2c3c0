"""The chart, and what helm makes of it."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from tests.programs import ROOT

DEPLOY = ROOT / "deploy"
CHART = DEPLOY / "helm" / "hudi-index"
SCENARIOS = sorted((CHART / "ci").glob("*-values.yaml"))


def values_of(scenario: Path) -> dict[str, Any]:
    """The values of a scenario, with the chart's own where it states none, as Helm merges them."""

    def merged(own: dict[str, Any], given: dict[str, Any]) -> dict[str, Any]:
        return own | {
            key: merged(own[key], value) if isinstance(value, dict) and own.get(key) else value
            for key, value in given.items()
        }

    own = yaml.safe_load((CHART / "values.yaml").read_text())
    return merged(own, yaml.safe_load(scenario.read_text()) or {})


@dataclass(frozen=True)
class Rendered:
    """The objects of a rendered chart."""

    text: str

    @property
    def objects(self) -> list[dict[str, Any]]:
        """All of them."""
        return [each for each in yaml.safe_load_all(self.text) if each is not None]

    def of_kind(self, kind: str) -> list[dict[str, Any]]:
        """Those of a kind, such as Deployment."""
        return [each for each in self.objects if each["kind"] == kind]

    def pods(self) -> list[dict[str, Any]]:
        """The pods' specifications, one for each shard."""
        return [each["spec"]["template"]["spec"] for each in self.of_kind("Deployment")]

    def config(self, suffix: str) -> dict[str, str]:
        """The files of the ConfigMap whose name has that end."""
        (found,) = (
            each["data"]
            for each in self.of_kind("ConfigMap")
            if each["metadata"]["name"].endswith(suffix)
        )
        return dict(found)


Render = Callable[..., Rendered]
"""Renders the chart with files of values, and with `--set` for each further argument, for the
version of Kubernetes that `kubernetes` names."""
