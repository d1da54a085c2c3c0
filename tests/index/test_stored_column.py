"""`StoredColumn`: the record that a build writes to a manifest and a reader is opened with."""

import pickle

import pyarrow as pa
import pytest

from hudi_index_service.errors import EntryInvalid
from hudi_index_service.index.contract import ColumnSpec, ColumnStatistics, StoredColumn

SPEC = ColumnSpec("at", pa.timestamp("us", "UTC"), ("point", "exists"))


def test_cached_values_do_not_affect_equality_or_pickling() -> None:
    column = StoredColumn.of(SPEC, ColumnStatistics(3))
    assert column.layout == ("at", SPEC.type, SPEC.fields, False)
    assert column == StoredColumn.of(SPEC, ColumnStatistics(3))
    assert hash(column) == hash(StoredColumn.of(SPEC, ColumnStatistics(3)))
    again = pickle.loads(pickle.dumps(column))  # noqa: S301 - made here
    assert (again, again.layout) == (column, column.layout)


def test_it_holds_columns_of_its_type_with_a_subset_of_its_fields() -> None:
    column = StoredColumn.of(SPEC, ColumnStatistics(0))
    assert column.holds(SPEC)
    assert column.holds(ColumnSpec("at", SPEC.type, ("exists",)))
    assert not column.holds(ColumnSpec("at", SPEC.type, ("exists", "text")))
    assert not column.holds(ColumnSpec("at", pa.timestamp("us"), ("exists",)))


def test_an_unknown_type_is_refused_where_it_is_used() -> None:
    column = StoredColumn(name="at", type="interval", fields=("point",), null_count=0)
    assert not column.holds(SPEC)
    assert column.bounds(7).least is None
    for use in (lambda: column.type, lambda: column.spec, lambda: column.layout):
        with pytest.raises(EntryInvalid, match="unknown here: interval"):
            use()
