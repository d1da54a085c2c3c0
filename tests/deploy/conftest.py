"""The tools that check deploy/, made on first use."""

from pathlib import Path

import pytest

from dev.deploy_tools import KUBERNETES, DeployTools, find_deploy_tools
from tests.deploy.chart import CHART, Render, Rendered
from tests.programs import output_of


@pytest.fixture(scope="session")
def tools() -> DeployTools:
    return find_deploy_tools()


@pytest.fixture(scope="session")
def render(tools: DeployTools) -> Render:
    def rendered(*values: Path, **settings: object) -> Rendered:
        version = settings.pop("kubernetes", KUBERNETES[-1])
        files = [option for each in values for option in ("--values", each)]
        given = [option for pair in settings.items() for option in ("--set", "{}={}".format(*pair))]
        command = [tools.helm, "template", "its-name", CHART, "--kube-version", version]
        return Rendered(output_of([*command, *files, *given]))

    return rendered
