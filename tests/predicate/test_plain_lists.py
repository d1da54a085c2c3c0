"""IN lists of plain literals, each read as one token, mean the same as literal by literal."""

import pyarrow as pa
import pytest

from hudi_index_service.config import ReadSettings
from hudi_index_service.errors import IndexServiceError, PredicateUnsupported
from hudi_index_service.predicate import parse_predicate
from hudi_index_service.predicate.expression import In
from hudi_index_service.predicate.text.lex import tokenize

SCHEMA = pa.schema(
    {
        "s": pa.string(),
        "large": pa.large_string(),
        "code": pa.dictionary(pa.int32(), pa.string()),
        "tiny": pa.int8(),
        "i": pa.int32(),
        "n": pa.int64(),
        "d": pa.float64(),
        "price": pa.decimal128(12, 2),
        "day": pa.date32(),
        "at": pa.timestamp("us", "UTC"),
        "b": pa.binary(),
    }
)
LISTS = [
    "'a'",
    "'a', 'b' ,\n'a'\t,''",
    "'1', '2', '02', '1'",
    "'2024-01-01', '2024-1-2', '2024-01-03 00:00:00'",
    "1, 2, 3, 2, -2",
    "-1,-128,128,300,007",
    "2147483648, -2147483649, 9223372036854775807",
    "9223372036854775808, 5",
    "99999999999999999999999999999999999999999, 1",
    "1, '1', 2",
    "'%', '_', 'it', '😀 馬'",
]


def outcome(where: str) -> str:
    """The predicate as text with its type, or the error without the position."""
    try:
        predicate = parse_predicate(where, SCHEMA)
    except IndexServiceError as error:
        return f"{error.code}: {error.message.partition(' at line')[0]}"
    return f"{type(predicate).__name__} {predicate}"


@pytest.mark.parametrize("values", LISTS)
@pytest.mark.parametrize("operand", [*SCHEMA.names, "'a'", "1", "NOT s"])
def test_a_plain_list_means_the_same_as_its_literals_one_by_one(operand: str, values: str) -> None:
    plain, one_by_one = f"{operand} IN ({values})", f"{operand} IN (/**/{values})"
    assert [token.kind for token in tokenize(plain)][-2:] == ["list", "end"]
    assert "list" not in [token.kind for token in tokenize(one_by_one)]
    assert outcome(plain) == outcome(one_by_one)


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        ("'a' 'b', 'c'", ["ab", "c"]),
        (r"'a\'b', 'c'", ["a'b", "c"]),
        ("'a', -- all\n'c'", ["a", "c"]),
        ("\"a\", r'c'", ["a", "c"]),
    ],
)
def test_other_lists_are_read_literal_by_literal(values: str, expected: list[str]) -> None:
    predicate = parse_predicate(f"s IN ({values})", SCHEMA)
    assert isinstance(predicate, In)
    assert predicate.values.to_pylist() == expected


def test_a_plain_list_may_not_be_longer_than_the_setting() -> None:
    settings = ReadSettings(max_in_values=3)
    assert parse_predicate("i IN (1, 2, 3) AND s = 'x'", SCHEMA, settings=settings)
    with pytest.raises(
        PredicateUnsupported, match="More than 3 values in an IN list: '44' at line 2, column 4"
    ):
        parse_predicate("i IN (1, 2, 3,\n   44, 5)", SCHEMA, settings=settings)
