"""Which entries a budget affords, and which budgets are invalid."""

from typing import Any

import pytest

from hudi_index_service import Budget
from hudi_index_service.errors import ConfigInvalid


@pytest.mark.parametrize(
    ("budget", "affordable"),
    [
        (Budget(), 4),
        (Budget(files=3), 3),
        (Budget(files=9), 4),
        (Budget(bytes=1), 1),  # the file exceeds the whole budget and is still built
        (Budget(bytes=100), 1),
        (Budget(bytes=101), 2),
        (Budget(bytes=150), 2),
        (Budget(bytes=10_000), 4),
        (Budget(files=1, bytes=150), 1),
        (Budget(minutes=1, requests_per_second=0.1), 4),
    ],
)
def test_a_budget_affords_the_first_entries(budget: Budget, affordable: int) -> None:
    assert budget.affordable([100, 50, 10, 10]) == affordable


@pytest.mark.parametrize("value", [0, -1, float("nan"), float("inf")])
@pytest.mark.parametrize("limit", ["files", "bytes", "minutes", "requests_per_second"])
def test_limits_must_be_positive_and_finite(limit: str, value: Any) -> None:
    with pytest.raises(ConfigInvalid, match=f"budget's {limit} is"):
        Budget(**{limit: value})
