"""RLIKE matches what Java's regular expressions match in Spark."""

import random

import pyarrow as pa
import pytest

from hudi_index_service.predicate.regex import RegexUnsupported, parse_regex
from hudi_index_service.predicate.values import string_sql
from tests.predicate.test_against_spark import TEXTS, check

pytestmark = pytest.mark.fast

LINES = [
    "a\n", "\na", "a\r", "a\r\n", "a\n\n", "a\n\r", "\r\n", "\n", "a\u0085", "a\u2028", "a\u2029b",
    "ab\r\nab", "ab\nab\n", "\v", "a\x0bb", "a\tb", "a\fb", "\x1c", " ", "\xa0", "Buying a car",
    "I am Buying", "tag4242", "xTAG42", "2026-11-21", "a.b*c", "\u212a", "\u017f", "É", "k", "S",
    "aaaa", "abab", "ba", "😀😀", "a😀b", "\U00010000z", "\ud7ff", "\ue000", "0", "_", "-", "^",
]  # fmt: skip
VALUES = [*TEXTS, *LINES]

PATTERNS = [
    "", "a", "^", "$", "^$", "^a", "a$", "^a$", "ab|a", "^(a|b)$", "(a|^)b", "a|b$", "^.$", "^..$",
    ".", "a.b", "^a.*b$", r"\.", r"a\.b\*c", "[ab]", "[^ab]", "^[^,]+$", "[a-z]+[0-9]+", "[-a]",
    "[a-]", r"[\]\[]", r"[^\d]$", r"\d", r"\D", r"\w+", r"^\W", r"\s", r"\S$", r"[\w.]+@",
    r"[\s\d]",
    r"^\d{4}-\d{2}-\d{2}$", "a{2}", "a{2,}", "^a{1,3}$", "(ab){2}", "(?:ab)+$", "a+?", "a??b", "x*",
    "^Buying", "Buying$", "tag42+", "(?i)tag", "(?i)^BUYING", "(?i)[j-l]", "(?i)[^K]", "(?i)s",
    "(?i)é",
    "(?s)a.b", "(?s)^a.$", "(?is)A.B", r"\n", r"\r\n", r"\r$", r"\t", r"\x41", r"\u00e9", "😀",
    "^😀$",
    "^[😀]+$", "[^😀]$", "^.😀", r"\Qa.b\E", r"\Q(\E", r"a\Qb", "}", "]", "a]", r"\$", r"\^", r"\\",
    r"\A", r"a\z", r"\A\z", "a(b|)", "(|a)b", "(a?)b", "(a?)?b", "((a|b)c?)+$", "\n$", "a\n$",
    "(\n|b)$",
    "[a\r]$", "[^b]$", "^[^b]$", "a[^b]*$", "\0", "[\0-\x1f]", "[&]", "[a&b]", "['\"]", "%", "_",
]  # fmt: skip


def test_rlike_gives_sparks_results(spark_answers):
    data = pa.table({"c": pa.array(VALUES)})
    wheres = [f"c RLIKE {string_sql(pattern)}" for pattern in PATTERNS]
    wheres += ["c NOT RLIKE 'a$'", "NOT c REGEXP '^a'", "c regexp r'\\d'", "c RLIKE NULL"]
    check(data, wheres, spark_answers)


def random_pattern(choose: random.Random, depth: int = 2) -> str:
    """A pattern in mostly common syntax, built from characters of the values."""
    atoms = [
        "a",
        "b",
        "😀",
        "A",
        ".",
        r"\w",
        r"\W",
        r"\s",
        "[ab]",
        "[^a]",
        r"\n",
        "\r",
        "[^\n]",
        "0",
    ]
    pieces = []
    for _ in range(choose.randint(1, 3)):
        atom = choose.choice(atoms)
        if depth and choose.random() < 0.3:
            inner = [random_pattern(choose, depth - 1) for _ in range(choose.randint(1, 2))]
            atom = f"({'|'.join(inner)})"
        pieces.append(atom + choose.choice(["", "", "", "*", "+", "?", "{2}", "{1,2}", "+?"]))
    begin, end = choose.choice(["", "", "^"]), choose.choice(["", "", "$"])
    return (
        choose.choice(["", "", "", "(?i)", "(?s)"]) * (depth == 2) + begin + "".join(pieces) + end
    )


def test_random_expressions_give_sparks_results(spark_answers):
    choose = random.Random(20261121)
    patterns: list[str] = []
    while len(patterns) < 250:
        pattern = random_pattern(choose)
        try:
            parse_regex(pattern)
        except RegexUnsupported:
            continue
        patterns.append(pattern)
    wheres = [f"c RLIKE {string_sql(pattern)}" for pattern in patterns]
    check(pa.table({"c": pa.array(VALUES)}), wheres, spark_answers)


@pytest.mark.parametrize(
    "pattern",
    [
        r"\bcar", r"a\B", "(?=a)", "(?!a)", "(?<=a)b", "(?<n>a)", "(a)\\1", "a++", "a*+", "(a*)*",
        "(a|)+", "(?m)^a", "(?i:a)", "a(?i)b", r"\p{L}", r"\R", r"\h", r"\Z", r"\G", r"\cA",
        r"\012",
        "[[a]b]", "[a&&b]", "[]a]", "[a-\\d]", "[a-b-c]", "[z-a]", "[a", "[\\ud800-\\udfff]", "a$b",
        "($)a", "$*", "^*", "a{2,1}", "a{", "{", "*a", "(a", "a)", "a**", "a\\", r"\q", "(?",
        r"\z|a$",
        "a{1001}", "((a{99}){99}){99}", "(" * 60 + "a" + ")" * 60, "x" * 1001,
    ],
)  # fmt: skip
def test_syntax_that_java_and_re2_may_read_differently_is_refused(pattern: str) -> None:
    with pytest.raises(RegexUnsupported):
        parse_regex(pattern)


@pytest.mark.parametrize(
    ("pattern", "prefix", "required"),
    [
        ("^Buying", "Buying", "Buying"),
        (r"\ABuy.*new car", "Buy", "new car"),
        ("^abc*", "ab", "ab"),
        ("^abc+", "ab", "ab"),
        ("^a|b", "", ""),
        ("(^abc)d", "", "abc"),
        ("(?i)^abc", "", ""),
        ("(?i)^4242", "4242", "4242"),
        ("(abc)?de", "", "de"),
        ("x(abc){2}d", "", "abc"),
        ("x(abc){0,2}d", "", "x"),
        ("(abc|abd)", "", ""),
        (r"^50\.0\$", "50.0$", "50.0$"),
    ],
)
def test_prefix_and_required_text_of_every_match(pattern: str, prefix: str, required: str) -> None:
    regex = parse_regex(pattern)
    assert (regex.prefix, regex.required) == (prefix, required)
