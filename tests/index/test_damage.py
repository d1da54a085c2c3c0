"""A damaged index is refused or answers correctly, wherever the damage is, and never crashes the
process: Lucene reads mapped files, and the row reader leaves, natively."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from tests.docs.markdown import ROOT
from tests.example_counts import share


@pytest.mark.parametrize("name", ["btree", "lucene"])
def test_damage_is_refused_or_harmless(tmp_path: Path, name: str) -> None:
    times = share(300)
    command = [sys.executable, "-m", "tests.index.damage", name, str(tmp_path), str(times)]
    done = subprocess.run(
        command, cwd=ROOT, capture_output=True, text=True, timeout=250, check=False
    )

    assert done.returncode == 0, done.stderr
    outcomes = json.loads(done.stdout.splitlines()[-1])
    assert sum(outcomes.values()) == times
    assert outcomes["refused"] > times // 3
