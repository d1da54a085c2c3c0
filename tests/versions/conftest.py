"""The tables of all releases; written on the spot where `make test-versions` has not done so."""

from pathlib import Path

import pytest

from tests.versions.written import TABLE_VERSIONS, written_by


@pytest.fixture(scope="session", params=TABLE_VERSIONS)
def release(request: pytest.FixtureRequest) -> str:
    """A Hudi release."""
    return str(request.param)


@pytest.fixture(scope="session")
def tables(release: str) -> Path:
    """The folder of its tables."""
    return written_by(release)
