"""Column names: the error for an unknown name."""

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
        (["sendr"], "Use one of its columns: Sender, and 22 others."),
        (["PLACE", "ctiy"], "Use one of its fields: place.city, and 1 other."),
        (["place", "street"], "Use one of its fields: place.city, place.zip."),
        (
            ["x"],
            "Use one of its columns: "
            f"{', '.join(f'measured_{number:02}' for number in range(10))}, and 13 others.",
        ),
    ],
)
def test_unknown_column_suggests_similar_names(path: list[str], remedy: str) -> None:
    with pytest.raises(ColumnNotFound) as raised:
        find_column(MANY, path)
    assert raised.value.remedy == remedy
