"""The table of the README's queries: RFC-51's three messages."""

from pathlib import Path

import pytest

from tests.golden.table import Golden


@pytest.fixture
def messages(golden: Golden, tmp_path: Path) -> Path:
    """A new table of the three messages, without an index."""
    return golden("rfc_messages").put(tmp_path / "messages")
