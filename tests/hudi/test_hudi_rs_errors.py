"""Error messages of hudi-rs are mapped to the service's own errors."""

import pytest

from hudi_index_service.errors import NeedsSpark, StorageFailed, TableFeatureUnsupported
from hudi_index_service.hudi.hudi_rs import hudi_rs_errors_named


class PanicException(BaseException):
    """Named as pyo3 names a panic in Rust code."""


@pytest.mark.parametrize(
    ("raised", "kind"),
    [
        (RuntimeError("Record merge strategy is not supported"), NeedsSpark),
        (
            RuntimeError(
                "partial-update column 'amount' has type Int32 but the table schema expects Int64"
            ),
            NeedsSpark,
        ),
        (PanicException("index out of bounds"), NeedsSpark),
        (RuntimeError("connection refused"), StorageFailed),
    ],
)
def test_hudi_rs_errors_are_mapped(raised: BaseException, kind: type[Exception]) -> None:
    with pytest.raises(kind, match="Slice s") as found, hudi_rs_errors_named("Slice s"):
        raise raised
    assert found.value.__cause__ is raised


def test_needs_spark_is_an_unsupported_feature() -> None:
    with pytest.raises(TableFeatureUnsupported, match="NEEDS_SPARK: Slice s") as found:
        raise NeedsSpark("Slice s cannot be merged.")
    assert "spark=" in found.value.remedy
