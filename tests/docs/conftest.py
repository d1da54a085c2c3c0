"""The table of the README's queries, RFC-51's three messages, and a session that reads by index."""

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.golden.table import Golden
from tests.spark_session import PATIENT

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@pytest.fixture
def messages(golden: Golden, tmp_path: Path) -> Path:
    """A new table of the three messages, without an index."""
    return golden("rfc_messages").put(tmp_path / "messages")


@pytest.fixture
def reads_by_index(spark: "SparkSession") -> Iterator[None]:
    """The session's queries may use the index, unlike in other tests."""
    settings = PATIENT | {"spark.hudi.index.enabled": "true"}
    before = {name: spark.conf.get(name, None) for name in settings}
    for name, value in settings.items():
        spark.conf.set(name, value)
    yield
    for name, former in before.items():
        spark.conf.unset(name) if former is None else spark.conf.set(name, former)
