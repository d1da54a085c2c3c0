"""A damaged index is refused or answers correctly, wherever the damage is, and never crashes the
process: Lucene reads mapped files, and the row reader leaves, natively."""

import json
from pathlib import Path

from tests.example_counts import share
from tests.programs import lines_of


def test_damage_is_refused_or_harmless(tmp_path: Path) -> None:
    times = share(300)
    lines = lines_of("tests.index.damage", tmp_path, times, module=True)
    for name, line in zip(("btree", "lucene"), lines[-2:], strict=True):
        outcomes = json.loads(line)
        assert outcomes.pop("type") == name
        assert sum(outcomes.values()) == times
        assert outcomes["refused"] > times // 3
