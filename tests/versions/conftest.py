"""The tables of all releases, written on first use (see `tests.versions.written`)."""

from pathlib import Path

import pytest

from tests.versions.written import TABLE_VERSIONS, written_by


@pytest.fixture(scope="session", params=TABLE_VERSIONS)
def release(request: pytest.FixtureRequest) -> str:
    """A Hudi release, such as 1.2.0."""
    return str(request.param)


@pytest.fixture(scope="session")
def tables(release: str) -> Path:
    """The folder of the release's tables."""
    return written_by(release)
