"""The parts of LIKE patterns, on which prefix look-ups are based."""

import pyarrow as pa
import pytest

from hudi_index_service.predicate import parse_predicate
from hudi_index_service.predicate.expression import LikePart
from hudi_index_service.predicate.like import ANY, ONE, like_regex, parse_like

SCHEMA = pa.schema([("s", pa.string())])


def text(value):
    return LikePart("text", value)


@pytest.mark.parametrize(
    ("pattern", "parts"),
    [
        ("", ()),
        ("abc", (text("abc"),)),
        ("%%%", (ANY,)),
        ("Buying%", (text("Buying"), ANY)),
        ("a%%b", (text("a"), ANY, text("b"))),
        ("__%_", (ONE, ONE, ANY, ONE)),
        (r"a\%b\_c\\d%", (text(r"a%b_c\d"), ANY)),
        ("😀_", (text("😀"), ONE)),
    ],
)
def test_adjacent_texts_and_percent_signs_are_merged(pattern, parts):
    assert parse_like(pattern) == parts


def test_escape_character_takes_precedence_over_wildcards():
    assert parse_like("a%%", escape="%") == (text("a%"),)
    assert parse_like("!%!!%", escape="!") == (text("%!"), ANY)


@pytest.mark.parametrize(
    ("pattern", "prefix", "is_prefix_only"),
    [
        ("Buying%", "Buying", True),
        (r"50\%%", "50%", True),
        ("Buying", "Buying", False),
        ("Buying%car", "Buying", False),
        ("Buying_", "Buying", False),
        ("%car", "", False),
        ("%", "", False),
        ("", "", False),
    ],
)
def test_like_prefixes(pattern, prefix, is_prefix_only):
    escaped = pattern.replace("\\", "\\\\")
    like = parse_predicate(f"s LIKE '{escaped}'", SCHEMA)
    assert like.prefix == prefix
    assert like.is_prefix_only is is_prefix_only


def test_like_regex_escapes_the_text():
    assert like_regex((text("a.b\0"), ANY, ONE)) == r"(?s)\Aa\.b\x00.*.\z"
