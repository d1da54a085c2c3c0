"""The tests for every index type, run for hbase on a real HBase."""

import pytest

from dev.hbase import HBase
from hudi_index_hbase import HBaseIndexType
from hudi_index_service.config import HBaseSettings
from tests.index.conftest import BuildIndex, building

# Collected here too, with the fixture below.
from tests.index.test_conjuncts import (  # noqa: F401
    test_different_elements_of_an_array_may_match_each_conjunct,
)
from tests.index.test_contract import (  # noqa: F401
    of_type,
    test_each_leaf_is_answered_as_promised,
    test_verify_finds_no_fault_in_a_new_index,
)
from tests.index.test_leaves import (  # noqa: F401
    test_an_empty_batch_adds_no_rows,
    test_array_contains_is_exact,
    test_comparisons_with_arrays_are_not_answered,
    test_elements_behind_null_arrays_are_not_indexed,
    test_estimates_are_exact_for_terms,
)


@pytest.fixture(scope="session")
def build_any(hbase: HBase, tmp_path_factory: pytest.TempPathFactory) -> BuildIndex:
    """Builds indexes whose leaves are in the test run's HBase."""
    settings = HBaseSettings(host=hbase.host, port=hbase.port, table="contract")
    return building(HBaseIndexType(settings), tmp_path_factory.mktemp("contract"))
