"""Literals have the values and types that Spark gives the same text."""

from decimal import Decimal

import pyarrow as pa
import pytest

from hudi_index_service.predicate.text.lex import string_value, tokenize
from hudi_index_service.predicate.text.operands import number_literal

pytestmark = pytest.mark.fast

STRINGS = [
    *("'a'", '"a"', '"it\'s"', "'\"'", "''", "'a\nb'", "'\t'", "'é😀'", "'--'", "'/*'", "r'a\\nb'"),
    *("R'a'", r'r"\x"', r"'\''", r"'\"'", r"'\\'", r"'\n\r\t\b\Z'", r"'\a\v\f\x\z\/'"),
    *(r"'\0'", r"'\08'", r"'\000'", r"'\101'", r"'\177'", r"'\200'", r"'\277'", r"'\377'"),
    *(r"'\400'", r"'\8'", r"'\07'", r"'\1'", r"'\12'", r"'\1234'", r"'\%\_'", r"'\\%'", r"'\é'"),
    *(r"'\u0041'", r"'\u00'", r"'\U0001F600'", r"'\uD83D\uDE00'", r"'\U0001'", "'\\\n'"),
]
NUMBERS = {
    "0": "int",
    "-2147483648": "int",
    "2147483648": "bigint",
    "-9223372036854775808": "bigint",
    "9223372036854775808": "decimal(19,0)",
    "9" * 38: "decimal(38,0)",
    "1.": "decimal(1,0)",
    ".5": "decimal(1,1)",
    "00.10": "decimal(2,2)",
    "0.00": "decimal(2,2)",
    "-1.50": "decimal(3,2)",
    "1e3BD": "decimal(4,0)",
    "1.5e3bd": "decimal(4,0)",
    "1e-3BD": "decimal(3,3)",
    "12BD": "decimal(2,0)",
    "1e3": "double",
    "1.e-3": "double",
    ".5D": "double",
    "1d": "double",
    "-0.0D": "double",
    "1e-400": "double",
    "4.9E-324": "double",
    "1.7976931348623157E308": "double",
    "1F": "float",
    "0.1f": "float",
    "1E3F": "float",
    "16777217.0000001F": "float",
    "-128Y": "tinyint",
    "32767s": "smallint",
    "-9223372036854775808L": "bigint",
}
ARROW_TYPES = {
    "tinyint": pa.int8(),
    "smallint": pa.int16(),
    "int": pa.int32(),
    "bigint": pa.int64(),
    "float": pa.float32(),
    "double": pa.float64(),
}


def test_strings_have_sparks_values(spark):
    selected = ", ".join(f"{text} AS c{i}" for i, text in enumerate(STRINGS))
    expected = list(spark.sql(f"SELECT {selected}").collect()[0])
    assert [string_value(tokenize(text)[0]) for text in STRINGS] == expected


def test_numbers_have_sparks_values_and_types(spark):
    selected = ", ".join(f"{text} AS c{i}" for i, text in enumerate(NUMBERS))
    frame = spark.sql(f"SELECT {selected}")
    row = frame.collect()[0]
    for field, text, expected in zip(frame.schema, NUMBERS, row, strict=True):
        assert field.dataType.simpleString() == NUMBERS[text], text
        literal = number_literal(text)
        assert literal.as_py() == expected, text
        if isinstance(expected, Decimal):
            kind = f"decimal({literal.type.precision},{literal.type.scale})"
            assert kind == NUMBERS[text], text
        else:
            assert literal.type == ARROW_TYPES[NUMBERS[text]], text


@pytest.mark.parametrize("text", ["1abc", "1_000", "0x10"])
def test_digits_followed_by_letters_are_a_word(text):
    assert tokenize(text)[0].kind == "word"
