"""Lists of values are looked up in many open entries together, in each only those values that its
base file may hold: with the rows of a scan."""

import random

import pytest

from hudi_index_service.index.btree.reader import BTreeReader
from hudi_index_service.read.slices import many_entries as module
from tests.same_rows import assert_same_rows

COLUMNS = ["id", "amount"]
EACH_TWENTIETH = f"id IN ({', '.join(repr(str(number)) for number in range(0, 4_000, 20))})"


@pytest.fixture
def asked(monkeypatch) -> list[int]:
    """How many pairs of an entry and a value each call was asked for."""
    pairs: list[int] = []
    listed_rows = module.listed_rows

    def counting(leaf, servings, values, pool):
        found = listed_rows(leaf, servings, values, pool)
        pairs.append(values.count if any(found) else 0)
        return found

    monkeypatch.setattr("hudi_index_service.read.slices.lookups.listed_rows", counting)
    return pairs


def a_list(dice: random.Random) -> str:
    """A condition with a list of present, absent, repeated and long values, and perhaps NULL."""
    texts = [str(dice.randrange(-9, 2_400)) for _ in range(dice.randrange(2, 120))]
    texts += ["x" * dice.choice([300, 600, 33_000]), *dice.choices(texts, k=3)]
    ids = ", ".join(f"'{each}'" for each in texts) + dice.choice(["", ", NULL"])
    numbers = ", ".join(str(dice.randrange(-5, 6_100)) for _ in range(dice.randrange(1, 40)))
    return dice.choice(
        [
            f"id IN ({ids})",
            f"amount IN ({numbers}, NULL)",
            f"id IN ({ids}) AND amount < 3000",
            f"id IN ({ids}) OR amount IN ({numbers})",
            f"NOT (id IN ({ids})) AND amount IN (3, 51, 60)",
        ]
    )


@pytest.mark.parametrize("using", ["lucene", "btree"])
@pytest.mark.parametrize("name", ["four_base_files", "half_compacted", "compacted_then_updated"])
def test_random_lists_find_the_rows_of_a_scan(opened, name, using, asked):
    dice, table = random.Random(name), opened(name, COLUMNS, using=using)
    for _ in range(25):
        where = a_list(dice)
        expected = table.scan(where, use_index="never").to_arrow()
        assert_same_rows(table.scan(where).to_arrow(), expected)
        assert table.scan(where).count() == expected.num_rows
        assert table.scan(where).exists() == bool(expected.num_rows)
    assert sum(asked) > 0 or name == "compacted_then_updated", "which has one base file"


@pytest.mark.parametrize("using", ["lucene", "btree"])
def test_each_entry_is_asked_only_for_values_that_its_base_file_may_hold(opened, using, asked):
    scan = opened("four_base_files", COLUMNS, using=using).scan(EACH_TWENTIETH, columns=["id"])
    assert scan.to_arrow().num_rows == 100
    # Half of the values are in no base file; bounds of four files exclude few others.
    assert 100 <= sum(asked) <= 400
    assert sum(each.candidates or 0 for each in scan.statistics.slices) == 100


def test_rows_that_are_known_are_counted_without_another_look_up(opened, monkeypatch):
    table, bounds = opened("four_base_files", COLUMNS, using="btree"), list[object]()
    monkeypatch.setattr(BTreeReader, "row_bounds", lambda reader, leaf: bounds.append(leaf))
    assert table.scan(EACH_TWENTIETH).count() == 100
    assert not bounds
