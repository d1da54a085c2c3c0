"""The optimizer rule on PySpark 4. Hudi's bundles for it are not at hand: a class stands for Hudi's
list of files (java/), and the base files are those that Hudi wrote on Spark 3.5."""

import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from dev.environment import Environment
from dev.native import SPARK_RULE
from dev.paths import CONSTRAINTS
from dev.prerequisites import find_jdk
from dev.steps import Steps
from tests.kept_tables import kept
from tests.programs import ROOT, lines_of

pytestmark = [pytest.mark.slow, pytest.mark.timeout(1800)]  # PySpark is 400 MB

PINS = (CONSTRAINTS / "spark-4.txt").read_text().split()
STAND_IN = Path(__file__).with_name("java")
FINDINGS = ("off", "on", "plan", "parameter", "statement", "error", "gone")


@pytest.fixture(params=PINS, ids=lambda pin: pin.partition("==")[2].rpartition(".")[0])
def pyspark(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    """The folder with PySpark of a line, kept in the user's cache."""
    pin: str = request.param
    (tmp_path / "pin.txt").write_text(pin)

    def install(folder: Path) -> None:
        steps = Steps(tmp_path / "log")
        Environment(Path(sys.prefix), steps).install_beside(
            tmp_path / "pin.txt", folder, log="pyspark"
        )

    return kept("pyspark", pin.partition("==")[2], install)


@pytest.fixture
def rule(pyspark: Path, tmp_path: Path) -> Path:
    """The folder of the package with the jar, built as README.md says."""
    environment = Environment(Path(sys.prefix), Steps(tmp_path / "log"))
    environment.build_wheel(
        SPARK_RULE.copied_to(tmp_path / "source").folder,
        tmp_path,
        log="rule",
        env={
            "HUDI_INDEX_SPARK_JARS": str(pyspark / "pyspark" / "jars"),
            "JAVA_HOME": str(find_jdk().home),
        },
        constrained=False,
    )
    (wheel,) = tmp_path.glob("*.whl")
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(tmp_path / "rule")
    return tmp_path / "rule"


@pytest.fixture
def stand_in(pyspark: Path, tmp_path: Path) -> Path:
    """The folder of the compiled class."""
    command = [find_jdk().home / "bin" / "javac", "-proc:none", "-d", tmp_path / "classes"]
    command += ["-classpath", pyspark / "pyspark" / "jars" / "*", *STAND_IN.rglob("*.java")]
    subprocess.run([*map(str, command)], check=True)
    return tmp_path / "classes"


def test_rule_is_off_until_it_is_asked_for_and_then_answers_as_spark_does(
    pyspark: Path, rule: Path, stand_in: Path, golden_index, tmp_path: Path
) -> None:
    table = golden_index("messages_of_users", ["sender"], step="written")
    lines = lines_of(
        "tests.spark_4.program",
        table,
        stand_in,
        module=True,
        timeout=900,
        HUDI_INDEX_STATE_FOLDER=str(tmp_path / "state"),
        PYTHONPATH=f"{rule}:{pyspark}:{ROOT}",
        PYSPARK_PYTHON=sys.executable,
    )
    assert [each for each in lines if each.partition(":")[0] in FINDINGS] == [
        "off: []",
        "on: True 30 True",
        "on: True 56 True",
        "on: True 1 True",
        "on: True 60 True",
        "on: True 30 True",
        "on: True 30 False",
        "plan: True",
        "parameter: 7",
        "statement: i",
        "error: ParseException STATEMENT_INVALID",
        "error: AnalysisException INDEX_NOT_FOUND",
        "gone: True False",
    ]
