"""Any text given as a predicate is answered, or refused by an error of the service that can be
printed."""

import os
from collections import Counter

import pyarrow as pa
import pytest

from hudi_index_service.errors import IndexServiceError
from hudi_index_service.predicate import evaluate, negation_normal_form, parse_predicate
from hudi_index_service.predicate.expression import Predicate
from hudi_index_service.predicate.simplify import simplified
from hudi_index_service.predicate.text.for_spark import is_for_spark
from tests.faults.where_texts import ROWS, where_texts

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
