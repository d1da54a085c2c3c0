"""Default selectivities, for rows of which nothing is known."""

import pytest

from hudi_index_service.optimizer.estimates import selectivities
from hudi_index_service.predicate.expression import MatchMode
from hudi_index_service.predicate.like import parse_like


def test_longer_patterns_match_fewer_rows() -> None:
    like = [selectivities.like(parse_like(each)) for each in ("%", "%a", "%ab", "%ab%", "a_")]
    assert like == pytest.approx([1, 0.2, 0.04, 0.2, 0.18])


def test_every_pattern_is_assumed_to_match_some_rows() -> None:
    least = selectivities.like(parse_like("%a long text%"))
    assert least == selectivities.text("a long text") == 0.005


@pytest.mark.parametrize("mode", MatchMode)
def test_every_search_is_assumed_to_match_some_rows(mode: MatchMode) -> None:
    assert 0 < selectivities.match(mode) < 0.1
