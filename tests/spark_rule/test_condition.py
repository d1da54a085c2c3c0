"""Conditions of requests as where texts."""

import json

import pytest

from hudi_index_service.errors import SparkUnsupported
from hudi_index_service.sql.rule.condition import Translation
from hudi_index_service.sql.rule.request import Counts, read_request


def leaf(op, *values, column=("a",), type="integer", **more):
    return {"op": op, "column": list(column), "type": type, "values": list(values), **more}


UNKNOWN = {"op": "unknown"}
ONE = leaf("=", 1)
NOT_NULL = {"op": "is not null", "column": ["a"]}


def both(*of):
    return {"op": "and", "of": list(of)}


def either(*of):
    return {"op": "or", "of": list(of)}


def negated(of):
    return {"op": "not", "of": [of]}


# Of a table with no column "unanswered", and an index for English words.
TRANSLATION = Translation(
    lambda leaf: "unanswered" not in leaf, lambda search, analyzer: analyzer == "english"
)


@pytest.mark.parametrize(
    ("condition", "text"),
    [
        (ONE, "`a` = 1"),
        (leaf("<", 5, type="long"), "`a` < 5L"),
        (leaf("<=>", None), "`a` <=> NULL"),
        (leaf("in", 1, None, 3), "`a` IN (1, NULL, 3)"),
        (leaf(">", "NaN", type="double"), "`a` > CAST('NaN' AS DOUBLE)"),
        (leaf(">", "1.0E10", type="double"), "`a` > 10000000000.0D"),
        (leaf("=", "0.1", type="float"), "`a` = 0.1F"),
        (leaf("=", "12.50", type="decimal(10,2)"), "`a` = 12.50BD"),
        (leaf("=", "AP8=", type="binary"), "`a` = X'00FF'"),
        (leaf("=", 20454, type="date"), "`a` = DATE'2026-01-01'"),
        (leaf("=", 0, type="timestamp"), "`a` = TIMESTAMP'1970-01-01 00:00:00Z'"),
        (leaf("=", True, type="boolean"), "`a` = TRUE"),
        (leaf("=", "it's", type="string", column=("p", "c`d")), r"`p`.`c``d` = 'it\'s'"),
        (leaf("starts with", "5%_!", type="string"), "`a` LIKE '5!%!_!!%' ESCAPE '!'"),
        (leaf("like", "a#_%", type="string", escape="#"), "`a` LIKE 'a#_%' ESCAPE '#'"),
        (leaf("rlike", "^a", type="string"), "`a` RLIKE '^a'"),
        (leaf("array contains", "x", type="string"), "array_contains(`a`, 'x')"),
        ({"op": "is true", "column": ["a"]}, "`a`"),
        ({"op": "is null", "column": ["a"]}, "`a` IS NULL"),
        (negated(ONE), "NOT (`a` = 1)"),
        (negated(NOT_NULL), "NOT (`a` IS NOT NULL)"),
        # Parts of a conjunction may be left out, arms of a disjunction and of NOT may not.
        (both(ONE, UNKNOWN), "`a` = 1"),
        (either(ONE, both(UNKNOWN, leaf("=", 2))), "(`a` = 1) OR (`a` = 2)"),
        (either(ONE, UNKNOWN), None),
        (negated(both(ONE, UNKNOWN)), None),
        (negated(either(ONE, leaf("=", 2))), "NOT ((`a` = 1) OR (`a` = 2))"),
        # What the service does not answer is left out, too.
        (both(ONE, leaf("=", 1, column=("unanswered",))), "`a` = 1"),
        (NOT_NULL, None),
        (leaf("=", 1, type="interval day"), None),
        (leaf("≈", 1), None),
    ],
)
def test_conditions_as_text(condition, text):
    assert TRANSLATION.where_text([condition]) == text


def test_several_conditions_are_joined_once_each():
    conditions = [NOT_NULL, ONE, leaf(">", 5), ONE, UNKNOWN]
    assert TRANSLATION.where_text(conditions) == "(`a` = 1) AND (`a` > 5)"


@pytest.mark.parametrize(
    ("conditions", "text"),
    [
        ([ONE], "`a` = 1"),
        ([NOT_NULL, ONE], "(`a` IS NOT NULL) AND (`a` = 1)"),
        ([either(ONE, both(NOT_NULL, ONE))], "(`a` = 1) OR ((`a` IS NOT NULL) AND (`a` = 1))"),
        ([ONE, UNKNOWN], None),
        ([both(ONE, UNKNOWN)], None),
        ([ONE, leaf("=", 1, column=("unanswered",))], None),
    ],
)
def test_exact_text_leaves_nothing_out(conditions, text):
    assert TRANSLATION.exact_where_text(conditions) == text


def request_text(**fields):
    return json.dumps(
        {
            "version": 1,
            "table": "file:/t",
            "instants": ["20260101000000000"],
            "options": {"path": "file:/t", "as.of.instant": "2026-01-01"},
            "columns": [{"name": "id", "type": "string"}],
            "where": [ONE],
            **fields,
        }
    )


def test_request():
    request = read_request(request_text())
    assert (request.uri, request.as_of, request.query_type) == ("file:/t", "2026-01-01", "snapshot")
    assert (request.names, request.types) == (["id"], ["string"])


def test_request_of_counts():
    assert read_request(request_text()).counts is None
    fields = {"names": ["k", "n"], "group": "id", "of": [[NOT_NULL]]}
    assert read_request(request_text(counts=fields)).counts == Counts(
        **fields, most=None, all=False
    )
    fields = {"names": ["row"], "of": [[]], "most": 3}
    assert read_request(request_text(counts=fields)).counts == Counts(
        **fields, group=None, all=False
    )


def test_request_with_unknown_option_is_sparks():
    reason = read_request(request_text(options={"no.such": "1"}))
    assert reason == "the service does not know the option no.such"


def test_request_of_another_release_is_refused():
    with pytest.raises(SparkUnsupported, match="hudi-index-spark and hudi-index-service"):
        read_request(request_text(version=2))


def test_searches_need_an_index_with_their_analyzer():
    def search(analyzer):
        call = {"function": "match", "text": "it's", "edits": None, "analyzer": analyzer}
        return {"op": "search", "column": ["p", "c.d"], "call": call}

    def text(*conditions):
        return TRANSLATION.where_text(conditions)

    assert text(search("english")) == r"match(`p`.`c.d`, 'it\'s')"
    assert text(negated(search("english")), ONE) == (
        r"(NOT (match(`p`.`c.d`, 'it\'s'))) AND (`a` = 1)"
    )
    assert text(search("standard"), ONE) == "`a` = 1"
    assert text(either(search("standard"), ONE)) is None
