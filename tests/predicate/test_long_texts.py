"""Texts, numbers, names and patterns of any length are parsed in time proportional to their length,
or refused."""

import random
import re

import pyarrow as pa
import pyarrow.compute as pc
import pytest

from hudi_index_service.config import ReadSettings
from hudi_index_service.errors import PredicateInvalid, PredicateUnsupported
from hudi_index_service.predicate import evaluate, parse_predicate
from hudi_index_service.predicate.expression import Constant, In
from hudi_index_service.predicate.like import like_regex, long_like_regex, parse_like
from hudi_index_service.predicate.text.lex import string_value, tokenize
from tests.example_counts import share

SCHEMA = pa.schema([("amount", pa.int64()), ("name", pa.string()), ("cost", pa.decimal128(10, 2))])
LONG = 150_000  # characters
# Python converts at most 4,300 digits at once.
DIGITS = "9" * 4_301


@pytest.mark.parametrize(
    "where",
    [
        f"amount = {DIGITS}",
        f"amount = -{DIGITS}L",
        f"amount IN (1, {DIGITS})",
        f"name = {DIGITS}",
        f"cost = 0.{DIGITS}BD",
        f"amount = 1e{DIGITS}",
        f"amount = 1e{DIGITS}BD",
        "amount = 1e99999999999999999999BD",
        f"cost = CAST('1' AS DECIMAL({DIGITS}))",
    ],
)
def test_numbers_with_too_many_digits_are_refused_in_a_short_message(where: str) -> None:
    with pytest.raises(PredicateInvalid) as caught:
        parse_predicate(where, SCHEMA)
    assert len(caught.value.message) < 300


@pytest.mark.parametrize("where", [f"amount = '{DIGITS}'", f"amount = CAST('{DIGITS}' AS INT)"])
def test_text_with_too_many_digits_is_null_as_a_number(where: str) -> None:
    assert parse_predicate(where, SCHEMA) == Constant(None)


def test_leading_zeros_are_ignored() -> None:
    zeros = "0" * 5_000
    for where in (f"amount = {zeros}7", f"amount = '{zeros}7'", f"amount = {zeros}7L"):
        assert str(parse_predicate(where, SCHEMA)) == "`amount` = 7L"


@pytest.mark.parametrize(
    "where", ["`\ud800` = 1", "name = '\ud800'", "name LIKE r'\udfff'", "\ud800"]
)
def test_lone_surrogate_is_refused_in_a_printable_message(where: str) -> None:
    with pytest.raises(PredicateInvalid, match="line 1") as caught:
        parse_predicate(where, SCHEMA)
    str(caught.value).encode()


def test_placeholders_are_refused() -> None:
    with pytest.raises(PredicateInvalid):
        parse_predicate("? ? 1.5BD", SCHEMA)


def test_predicate_of_another_type_than_text_is_refused() -> None:
    with pytest.raises(PredicateInvalid, match="not int"):
        parse_predicate(5, SCHEMA)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "where",
    [
        "'" + "x" * LONG + "'",
        "'" + r"\n" * LONG + "'",
        "1" * LONG + "x",
        "1." + "1" * LONG + "x",
        "`" + "``" * LONG + "`",
        "/**/" * (LONG // 4) + "1",
        "--" + "x" * LONG,
    ],
)
def test_long_tokens(where: str) -> None:
    tokens = tokenize(where)
    assert len(tokens) <= 4
    if tokens[0].kind == "string":
        assert len(string_value(tokens[0])) == LONG


def test_in_list_of_fifty_thousand_values() -> None:
    numbers = range(50_000)
    found = parse_predicate(f"amount IN ({', '.join(map(str, numbers))})", SCHEMA)
    assert isinstance(found, In)
    assert [each.as_py() for each in found.values] == list(numbers)


def test_three_thousand_operands() -> None:
    rows = pa.table({"amount": [3, 20_000]})
    for where in (
        " OR ".join(f"amount = {each}" for each in range(3_000)),
        " AND ".join(f"amount <> {each}" for each in range(4, 3_004)),
    ):
        assert evaluate(parse_predicate(where, SCHEMA), rows)[0].as_py()


@pytest.mark.parametrize(
    ("pattern", "matches"),
    [
        ("x" * LONG, False),
        ("_" * LONG, True),
        ("a_" * (LONG // 2), True),
        ("%ab" * (LONG // 4), True),
        ("%ab%ba" * (LONG // 6), False),
    ],
)
def test_long_patterns(pattern: str, matches: bool) -> None:
    rows = pa.table({"name": ["ab" * (LONG // 2), "ab", None]})
    found = evaluate(parse_predicate(f"name LIKE '{pattern}'", SCHEMA), rows)
    assert found.to_pylist() == [matches, False, None]


def test_long_patterns_match_like_short_ones() -> None:
    choose = random.Random(16)
    for _ in range(share(5_000)):
        letters = choose.choice(["ab%_", "ab%_😀\n", "a_", "a%_"])
        parts = parse_like("".join(choose.choices(letters, k=choose.randint(0, 8))))
        text = "".join(choose.choices("ab😀\n", k=choose.randint(0, 8)))
        expected = pc.match_substring_regex(pa.array([text]), pattern=like_regex(parts))
        assert bool(re.match(long_like_regex(parts), text)) is expected[0].as_py(), (parts, text)


def test_errors_name_the_setting_of_the_limit() -> None:
    limits = ReadSettings(max_predicate_length=20, max_in_values=2)
    parse_predicate("amount IN (1, 2)", SCHEMA, settings=limits)
    with pytest.raises(PredicateUnsupported, match="More than 2 values") as caught:
        parse_predicate("amount IN (1, 2, 3)", SCHEMA, settings=limits)
    assert "read.max_in_values" in caught.value.remedy
    with pytest.raises(PredicateUnsupported, match="21 characters; at most 20") as caught:
        parse_predicate("amount = 1".ljust(21), SCHEMA, settings=limits)
    assert "read.max_predicate_length" in caught.value.remedy
