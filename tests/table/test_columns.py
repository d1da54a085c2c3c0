"""Columns by name: what is said where there is none of that name."""

import pyarrow as pa
import pytest

from hudi_index_service.columns import find_column
from hudi_index_service.errors import ColumnNotFound

MANY = pa.schema(
    [
        ("_hoodie_record_key", pa.string()),
        *((f"measured_{number:02}", pa.int64()) for number in range(20)),
        ("Sender", pa.string()),
        ("place", pa.struct([("city", pa.string()), ("zip", pa.string())])),
    ]
)


@pytest.mark.parametrize(
    ("path", "remedy"),
    [
        (["sendr"], "Near names: Sender, and 22 others."),
        (["PLACE", "ctiy"], "Near names: place.city, and 1 other."),
        (["place", "street"], "Fields: place.city, place.zip."),
        (
            ["x"],
            f"Columns: {', '.join(f'measured_{number:02}' for number in range(10))}, "
            "and 13 others.",
        ),
    ],
)
def test_near_names_are_told_and_how_many_there_are_besides(path: list[str], remedy: str) -> None:
    with pytest.raises(ColumnNotFound) as raised:
        find_column(MANY, path)
    assert raised.value.remedy == remedy
