"""What every index type has to pass, passed by hbase on a real HBase."""

import pytest

from dev.hbase import HBase
from hudi_index_service.config import HBaseSettings
from hudi_index_service.index.hbase import HBaseIndexType
from tests.index.conftest import BuildIndex, building

# Collected here as well, with the fixture below.
from tests.index.test_conjuncts import (  # noqa: F401
    test_elements_of_an_array_may_fit_one_each,
)
from tests.index.test_contract import (  # noqa: F401
    test_each_leaf_is_answered_as_promised,
    test_elements_of_each_type_are_answered_as_promised,
    test_what_was_built_is_found_sound,
)
from tests.index.test_leaves import (  # noqa: F401
    test_an_empty_batch_adds_no_row,
    test_arrays_themselves_are_not_compared,
    test_estimates_are_near_the_truth_for_terms,
    test_exact_for_every_type_operator_and_list,
    test_what_lies_behind_arrays_that_are_null_is_not_indexed,
)


@pytest.fixture(scope="session")
def build_any(hbase: HBase, tmp_path_factory: pytest.TempPathFactory) -> BuildIndex:
    """Builds indexes whose leaves lie in the run's HBase."""
    known = HBaseSettings(host=hbase.host, port=hbase.port, table="contract")
    return building(HBaseIndexType(known), tmp_path_factory.mktemp("contract"))
