"""The first query of a process imports only what it needs, since imports take most of its time."""

import json
import subprocess
import sys
from typing import get_args

import pytest

import hudi_index_service
from hudi_index_service import open_table
from hudi_index_service.predicate.expression import Predicate
from tests.indexed import indexed
from tests.read.conftest import COLUMNS

NOT_NEEDED = (
    "hudi",  # merges log files
    "hudi_index_service.build.entry",
    "hudi_index_service.build.run",
    "hudi_index_service.read.explanation",
    "hudi_index_service.hook",
    "hudi_index_service.sql",
    "numpy.ma",
    "obstore",  # reads remote stores
    "pandas",  # pyarrow's conversions import it
    "pyarrow.dataset",
    "pyarrow.parquet",  # reads whole base files
    "pyspark",
    "yaml",
)

QUERY = """
import json, sys
from hudi_index_service import open_table

with open_table(sys.argv[1]) as table:
    for where in sys.argv[2:]:
        scan = table.scan(where, columns=["id"])
        scan.to_arrow(), scan.count(), scan.exists()
print(json.dumps(sorted(sys.modules)))
"""

PREDICATES = (
    "name = 'ada'",
    "name IN ('ada', 'bob') AND amount > 3",
    "amount BETWEEN 1 AND 5 OR ratio > 0.5",
    "NOT (name LIKE 'a%') AND small IS NOT NULL",
    "born = DATE '2020-01-01' OR flag",
    "cost > 3.5 OR seen > TIMESTAMP '2020-01-01 00:00:00'",
    "array_contains(tags, 'red') AND place.City = 'Rome'",
)


@pytest.mark.parametrize(
    ("name", "needed"),
    [
        ("awkward_clustered", set()),
        # hudi-rs merges the touched rows of base files, from a small file.
        ("awkward_with_logs_partitioned", {"hudi", "pyarrow.parquet"}),
    ],
)
def test_it_imports_nothing_else(golden, tmp_path, name, needed):
    indexed(golden(name).put(tmp_path), COLUMNS)
    command = [sys.executable, "-c", QUERY, str(tmp_path), *PREDICATES]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    modules = json.loads(done.stdout.splitlines()[-1])
    assert set(NOT_NEEDED) & set(modules) == needed


def test_no_java_is_started_for_the_few_rows_of_small_files(golden_index, tmp_path):
    """Segments tell which of a hundred files may have them. To scan these is faster than to open an
    entry."""
    indexed_copy = golden_index("hundred_base_files", ["id", "amount"])
    wheres = ("id = '77'", "id IN ('3', '99')", "amount = 20 AND id <> '5'", "id LIKE '7%'")
    command = [sys.executable, "-c", QUERY, str(indexed_copy), *wheres]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert "lucene" not in json.loads(done.stdout.splitlines()[-1])


def test_the_package_alone_imports_none_of_what_its_names_need():
    program = (
        "import json, sys\n"
        "import hudi_index_service as service\n"
        "before = sorted(sys.modules)\n"
        "assert set(service.__all__) <= set(dir(service))\n"
        "kinds = [getattr(service, name).__name__ for name in service.__all__]\n"
        "print(json.dumps([before, kinds, service.__all__]))\n"
    )
    command = [sys.executable, "-c", program]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    modules, kinds, names = json.loads(done.stdout)
    assert {"pyarrow", "numpy", "pydantic", "sqlglot", "hudi", "lucene", "pyspark"}.isdisjoint(
        modules
    )
    assert [each for each in modules if each.startswith("hudi_index_service.")] == []
    assert kinds == names


def test_an_unknown_name_of_the_package_is_an_attribute_error():
    with pytest.raises(AttributeError, match="has no attribute 'open_tabel'"):
        hudi_index_service.open_tabel  # noqa: B018 - reading it is the test


def test_a_predicate_passes_few_modules(golden_index):
    """From the text to the rows, so that a new kind of condition has few places to be handled."""
    nodes = tuple(get_args(Predicate))
    passed = set()

    def note(frame, event, _):
        if event == "call" and any(isinstance(x, nodes) for x in frame.f_locals.values()):
            passed.add(frame.f_globals["__name__"])

    where = "id IN ('3', '77') AND (amount < 100 OR msg LIKE 'Buying%') AND NOT id = '9'"
    with open_table(golden_index("hundred_base_files", ["id", "amount", "msg"])) as table:
        table.scan("id = '1'", use_index="require").to_arrow()  # what is looked up is open
        sys.setprofile(note)
        try:
            table.scan(where, use_index="require").to_arrow()
        finally:
            sys.setprofile(None)
    own = {name for name in passed if name.startswith("hudi_index_service.")}
    assert "hudi_index_service.predicate.fold" in own
    assert len(own) <= 30, sorted(own)
