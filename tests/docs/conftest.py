"""The table that the README queries: RFC-51's three messages."""

import shutil
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.hudi_tables import hudi_options, write

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

MESSAGES = [
    ("1", "Summer is coming", "UserA"),
    ("2", "Buying a new car", "UserA"),
    ("3", "Buying a new home", "UserB"),
]
SCHEMA = "id string, msg string, sender string"


@pytest.fixture(scope="session")
def written_messages(spark: "SparkSession", tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The table as Hudi wrote it; tests take a copy."""
    path = tmp_path_factory.mktemp("docs") / "messages"
    rows = spark.createDataFrame(MESSAGES, SCHEMA)
    write(rows, path, hudi_options("messages", ordering_column=None), operation="insert")
    return path


@pytest.fixture
def messages(written_messages: Path, tmp_path: Path) -> Path:
    """A fresh table of the three messages, without index."""
    return Path(shutil.copytree(written_messages, tmp_path / "messages"))
