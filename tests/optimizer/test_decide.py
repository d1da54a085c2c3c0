"""Whether to look up or to scan, decided from estimates."""

import pytest

from hudi_index_service.optimizer.decide import most_keys_by_index


@pytest.mark.parametrize(
    ("keys", "rows", "by_index"),
    [
        (1, 0, True),
        (16, 100, True),
        (17, 100, False),
        (1_000, 200_000, True),
        (1_001, 200_000, False),
    ],
)
def test_keys_are_looked_up_if_few_compared_with_the_rows(
    keys: int, rows: int, by_index: bool
) -> None:
    assert (keys <= most_keys_by_index(rows)) is by_index
