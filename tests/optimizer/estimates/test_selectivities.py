"""Shares of rows of which nothing is known."""

import pytest

from hudi_index_service.optimizer.estimates import selectivities
from hudi_index_service.predicate.expression import MatchMode
from hudi_index_service.predicate.like import parse_like


def test_the_more_a_pattern_asks_for_the_fewer_fit() -> None:
    like = [selectivities.like(parse_like(each)) for each in ("%", "%a", "%ab", "%ab%", "a_")]
    assert like == pytest.approx([1, 0.2, 0.04, 0.2, 0.18])


def test_some_fit_a_pattern_that_somebody_asks_for() -> None:
    least = selectivities.like(parse_like("%a long text%"))
    assert least == selectivities.text("a long text") == 0.005


@pytest.mark.parametrize("mode", MatchMode)
def test_every_search_finds_some(mode: MatchMode) -> None:
    assert 0 < selectivities.match(mode) < 0.1
