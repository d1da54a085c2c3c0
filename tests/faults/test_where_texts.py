"""Any text given as a predicate is answered, or refused by an error of the service that can be
printed."""

import os
import random
import re
from collections import Counter
from collections.abc import Callable, Iterator
from datetime import UTC, date, datetime
from decimal import Decimal

import pyarrow as pa
import pytest

from hudi_index_service.errors import IndexServiceError
from hudi_index_service.predicate import evaluate, negation_normal_form, parse_predicate
from hudi_index_service.predicate.expression import Predicate
from hudi_index_service.predicate.simplify import simplified
from hudi_index_service.predicate.text.for_spark import is_for_spark

ROWS = pa.record_batch(
    {
        "i": pa.array([None, 0, 1, -1, 2**31 - 1], pa.int32()),
        "l": pa.array([None, 7, -(2**63), 2**53 + 1, 2**63 - 1], pa.int64()),
        "f": pa.array([None, 0.1, float("nan"), -0.0, float("inf")], pa.float32()),
        "d": pa.array([None, 1e300, float("nan"), 0.0, 1.5], pa.float64()),
        "m": pa.array([None, *map(Decimal, ("0.10", "-1.50", "7", "99999999.99"))]).cast(
            pa.decimal128(10, 2)
        ),
        "s": pa.array([None, "", "a%b_c", "😀\n\\", "9" * 5_000]),
        "x": pa.array([None, b"", b"\0\xff", b"abc", b"a" * 100], pa.binary()),
        "b": pa.array([None, True, False, True, False]),
        "day": pa.array([None, date(1, 1, 1), date(1970, 1, 1), date(9999, 12, 31), date.max]),
        "t": pa.array([None, *[datetime(2024, 2, 29, tzinfo=UTC)] * 4], pa.timestamp("us", "UTC")),
        "ntz": pa.array([None, *[datetime(1582, 10, 4)] * 4], pa.timestamp("us")),
        "tags": pa.array([None, [], [None], ["a"], ["a", "b"]], pa.list_(pa.string())),
        "st": pa.array([None, {"x": 1}, {"x": None}, {"x": 2}, {"x": 3}]),
        "a b`.c": pa.array(range(5)),
    }
)

_COLUMNS = ["i", "l", "f", "d", "m", "s", "x", "b", "day", "t", "ntz", "tags", "st", "st.x", "I"]
_COLUMNS += ["`a b``.c`", "nope", "st.nope", "i.x", "`\ud800`", "`st`.`x`", "`" + "n" * 300 + "`"]
_FITTING = {
    "i": ["0", "-1", "7L", "1.5", "'1'", "2147483648", "NULL", "CAST('x' AS INT)", "1e0"],
    "l": ["7", "'-9223372036854775808'", "9223372036854775808", "1e30", "1.5BD", "300S"],
    "d": ["1.5", "1e300", "'NaN'", "-0.0D", "CAST('Infinity' AS DOUBLE)", "3F"],
    "m": ["0.1", "-1.50", "7", "'7'", "99999999.99", "1e2"],
    "s": ["'a'", "''", "'😀'", "r'\\'", "'a' 'b'", "NULL", '"\'"', "'\\u0041'"],
    "x": ["X''", "x'ABC'", "NULL"],
    "day": ["DATE'1970-01-01'", "'2024-1-1'", "DATE'+12024-02-29'", "'x'", "NULL"],
    "t": ["TIMESTAMP'2024-02-29 00:00:00Z'", "'2024-02-29'", "DATE'2024-02-29'"],
    "st.x": ["1", "3.0", "NULL"],
}
_COMPARED = ["=", "==", "<=>", "<>", "!=", "<", "<=", ">", ">=", "!<", "!>"]
_TYPES = ["INT", "BIGINT", "TINYINT", "FLOAT", "DOUBLE", "STRING", "BINARY", "DATE", "TIMESTAMP"]
_TYPES += ["TIMESTAMP_NTZ", "BOOLEAN", "DECIMAL", "DECIMAL(38,38)", "DECIMAL(0)", "ARRAY<INT>"]
_LONG = ["9" * 20, "9" * 39, "1" * 4_300, "9" * 4_301, "0" * 5_000 + "1", "123456789" * 600]
_NUMBERS = ["0", "1", "7", "-1", "1.5", ".5", "1.", "1e5", "1e-400", "1e999999999", "1E400D"]
_NUMBERS += ["1L", "300Y", "1.5BD", "1F", "1e99999999999999999999BD", "0e999999999BD", "00012"]
_NUMBERS += ["1e2147483648", "0.1234567890123456789012345678901234567890BD", "1x", "1e", "2e+"]
_TEXTS = ["", "a", "a%", "_", "%_%", r"\\%", r"\\", r"\u0041", r"\ud800", r"\U0001F600", "\ud800"]
_TEXTS += ["😀", "\0", "''", r"\'", '"', "NaN", "-Infinity", "yes", "2024-02-30", "9999999-1-1"]
_TEXTS += ["+999999-12-31", "2024-01-01 25:00:00", "2024-01-01T00:00:00 Europe/Paris", "now"]
_TEXTS += ["\n", "12:00", "1e400", "0x1p3", " 1 ", "\u3000", "1" * 5_000, "x" * 2_000, "%a" * 700]
_PATTERNS = ["^a", "a$", "(a|b)+", "[a-", "a{1000}", "a{2,1}", "(?i)a", r"\\d+", r"\\p{L}"]
_PATTERNS += ["(" * 60]
_PATTERNS += ["(?=a)", "a**", "[^\\n]", "((a{9}){9}){9}", "x" * 1_001, r"\\Qa.b\\E", "$^"]
_WORDS = ["AND", "OR", "NOT", "IN", "IS", "NULL", "LIKE", "BETWEEN", "CAST", "AS", "DATE"]
_WORDS += ["(", ")", ",", ".", "=", "-", "+", "*", "/", "%", "||", "::", "?", ":p", "@", "#", ";"]
_WORDS += ["{", "}"]
_WORDS += ["SELECT", "FROM", "WHERE", "EXISTS", "INTERVAL", "CASE", "WHEN", "END", "ESCAPE", "TRUE"]
_WORDS += ["--", "/*", "*/", "/*+", "'", '"', "`", "\\", "\n", "r'", "X'", "\ud800", "\udfff", "é"]
_WORDS += ["[", "]", "<", ">", "!", "&", "^", "~", "$", "${x}", "\u2028", "\ufeff", "1.5BD", "\0"]


def _rules() -> dict[str, list[str]]:
    """Rule → sentences that may stand for it, in which «name» is another rule. A sentence that is
    listed more than once is chosen more often."""
    fitting = {f"of {column}": literals for column, literals in _FITTING.items()}
    return fitting | {
        "condition": [
            *["«leaf»"] * 5,
            *("«condition»«join»«condition»", "(«condition»«join»«condition»)"),
            *("NOT («condition»«join»«condition»)", "!(«condition»)"),
        ],
        "join": [" AND ", " OR ", "\nand\t", " or--x\n", " AND /* ' */ "],
        "leaf": ["«valid»"] * 3 + ["«odd»"] * 2,
        "valid": [
            sentence.replace("@", column).replace("«one»", f"«of {column}»")
            for column in _FITTING
            for sentence in (
                *("@ «compared» «one»", "«one»«compared»@", "@ «no»IN («one», «one»)"),
                *("@ «no»between «one» and «one»", "s «no»LIKE «string»"),
                *("s «no»RLIKE '«pattern»'", "@ IS «no»NULL", "@ IS «no»DISTINCT FROM «one»"),
                "array_contains(tags, 'a')",
            )
        ],
        "odd": [
            *("«operand» «compared» «literal»", "«literal» «compared» «operand»"),
            *("«operand» «no»IN («literals»)", "«operand» «no»LIKE «string»«escape»"),
            *("«operand» «no»BETWEEN «literal» AND «literal»", "«operand» «no»RLIKE '«pattern»'"),
            *("«operand» IS «no»«truth»", "array_contains(«operand», «literal»)"),
            *("match(«operand», «literal»)", "length(«operand») = 1", "«operand»"),
        ],
        "no": ["", "", "NOT "],
        "truth": ["NULL", "TRUE", "DISTINCT FROM 1", "x"],
        "escape": ["", "", " ESCAPE !", " ESCAPE '!'", " ESCAPE «string»"],
        "operand": ["«column»"] * 9 + ["«literal»"],
        "literals": ["", "«literal»", "«literal», «literal»", "«literal», «literals»"],
        "literal": [
            *("NULL", "TRUE", "FALSE", "?", ":p", "1 + 1", "INTERVAL 1 DAY", "now()"),
            *["«number»"] * 18 + ["«sign»«long»«suffix»"] * 3 + ["«string»"] * 13,
            *["CAST(«literal» AS «type»)", "«prefix»«string»"] * 5,
        ],
        "prefix": ["DATE", "TIMESTAMP", "TIMESTAMP_NTZ", "X", "r"],
        "sign": ["", "-"],
        "suffix": ["", "L", "BD", "D", "e5", "F"],
        "string": ["'«quoted»'", "'«quoted»'", '"«quoted»"'],
        "quoted": ["«text»", "«text»", "«pattern»", "«long»"],
        "column": _COLUMNS,
        "compared": _COMPARED,
        "number": _NUMBERS,
        "long": _LONG,
        "type": _TYPES,
        "text": _TEXTS,
        "pattern": _PATTERNS,
        "word": _WORDS,
        "fragment": ["«word»", "«number»", "«column»"],
    }


_RULES = _rules()


def where_texts(seed: int, number: int) -> Iterator[str]:
    """That many texts: sentences, often with characters changed, or only fragments."""
    choose = random.Random(seed)

    def written(rule: str) -> str:
        sentence = choose.choice(_RULES[rule])
        return re.sub("«(.+?)»", lambda part: written(part[1]), sentence)

    for _ in range(number):
        kind = choose.random()
        if kind < 0.005:
            yield _long_one(choose, written)
        elif kind < 0.12:
            fragments = [written("fragment") for _ in range(choose.randint(0, 8))]
            yield choose.choice(["", " "]).join(fragments)
        else:
            text = written("condition")
            for _ in range(choose.choice([0, 0, 0, 1, 1, 2, 5])):
                at = choose.randrange(len(text) + 1)
                to = min(len(text), at + choose.randint(0, 6))
                changed = choose.choice(["", written("word"), text[at:to] * 2])
                text = text[:at] + changed + text[to:]
            yield text


def _long_one(choose: random.Random, written: Callable[[str], str]) -> str:
    times = choose.choice([51, 200, 2_000])
    return choose.choice(
        [
            "(" * times + "i = 1" + ")" * times,
            "NOT " * times + "i = 1",
            "i = " + "- " * times + "1",
            " AND ".join(["i = 1"] * times),
            " OR ".join(f"(i = {each} AND NOT l > {each})" for each in range(times)),
            "s = " + "CAST(" * times + "1" + " AS INT)" * times,
            f"i IN ({', '.join(map(str, range(times)))})",
            f"s IN ({', '.join([written('string')] * 20)})",
            f"s LIKE '{'%_' * times}'",
            f"{'/*' * times} i = 1 {'*/' * times}",
            "array_contains(" * times + "tags",
            (written(choose.choice(["word", "number"])) + " ") * times,
            "st" + ".x" * times + " = 1",
        ]
    )


pytestmark = pytest.mark.slow

TEXTS = int(os.environ.get("WHERE_TEXTS", "50000"))
SEED = int(os.environ.get("WHERE_SEED", "16"))
LONGEST_MESSAGE = 2_000


def outcome(where: str) -> str:
    """The result of a text: "answered", or the code of the error that refuses it."""
    try:
        predicate = parse_predicate(where, ROWS.schema)
        truth = evaluate(predicate, ROWS)
    except IndexServiceError as error:
        refused = error
    else:
        check_answer(predicate, truth)
        return "answered"
    assert len(refused.message) < LONGEST_MESSAGE
    refused.message.encode()
    is_for_spark(where)  # the next check for a refused text
    return refused.code


def check_answer(predicate: Predicate, truth: pa.BooleanArray) -> None:
    """The predicate's text parses to the same text; simplified, it is TRUE for the same rows."""
    assert len(truth) == len(ROWS)
    assert str(parse_predicate(str(predicate), ROWS.schema)) == str(predicate)
    shorter = evaluate(simplified(negation_normal_form(predicate)), ROWS)
    assert shorter.fill_null(False).equals(truth.fill_null(False))


@pytest.mark.timeout(900)
@pytest.mark.parametrize("third", [0, 1, 2])
def test_random_texts_are_answered_or_refused(third: int) -> None:
    outcomes: Counter[str] = Counter()
    texts = TEXTS // 3
    for where in where_texts(SEED + 1000 * third, texts):
        try:
            outcomes[outcome(where)] += 1
        except Exception as error:
            raise AssertionError(
                f"{type(error).__name__}: {error!s:.200}, of {ascii(where)[:2000]}"
            ) from error

    assert outcomes["answered"] > texts / 20
    assert outcomes["PREDICATE_UNSUPPORTED"] > texts / 20
    assert outcomes["PREDICATE_INVALID"] > texts / 20
    assert set(outcomes) <= {
        "answered",
        "PREDICATE_INVALID",
        "PREDICATE_UNSUPPORTED",
        "COLUMN_NOT_FOUND",
        "COLUMN_AMBIGUOUS",
    }, outcomes
