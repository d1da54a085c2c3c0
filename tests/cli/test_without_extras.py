"""The command line where no extra is installed."""

import pytest

from tests.programs import ended

BLOCKED = """
import sys
class Missing:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in {missing}:
            raise ModuleNotFoundError(f"No module named {{name!r}}", name=name)
sys.meta_path.insert(0, Missing())
from hudi_index_service.cli import main
sys.exit(main({arguments}))
"""
MISSING = (
    *("pyspark", "py4j", "pandas", "starlette", "uvicorn", "h11", "airflow", "happybase"),
    *("hdfs_native", "boto3", "pymetastore"),
)


@pytest.mark.parametrize(
    ("arguments", "code", "printed"),
    [
        (["--help"], 0, "Row-exact secondary indexes"),
        (["sql", "SHOW INDEXES FROM t"], 1, "pip install 'hudi-index-service[spark]'"),
        (["serve", "."], 1, "pip install 'hudi-index-service[hook]'"),
        (["serve-spark", "."], 1, "pip install 'hudi-index-service[spark,hook]'"),
    ],
)
def test_commands_name_the_extra_that_they_lack(
    arguments: list[str], code: int, printed: str
) -> None:
    program = BLOCKED.format(missing=MISSING, arguments=arguments)
    done = ended(program)
    assert (done.returncode, printed in done.stdout + done.stderr) == (code, True), done.stderr
    assert "Traceback" not in done.stderr
