"""Definitions have one owner: the fleet plans and changes its own, and leaves those of others."""

import hashlib
import json
from collections.abc import Callable, Iterator
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from hudi_index_service import Column, IndexedTable, open_table
from hudi_index_service.build.strategy import WHOLE_BACKFILL, Strategy, selector
from hudi_index_service.errors import ColumnNotFound, IndexChanged
from hudi_index_service.fleet.definitions import (
    DefinitionPlan,
    Differences,
    apply,
    differences,
    plan_of,
)
from hudi_index_service.fleet.policies.policy import DesiredIndex, TablePolicy
from hudi_index_service.hook.table_upkeep import TableUpkeep
from hudi_index_service.index.metadata.definitions import IndexDefinition, SeenTimeline
from tests.golden.table import Golden

Policies = Callable[..., TablePolicy]


@pytest.fixture
def table(golden: Golden, tmp_path: Path) -> Iterator[IndexedTable]:
    """Two partitions after one commit, without an index."""
    with open_table(golden("two_partitions").put(tmp_path / "table", "written")) as table:
        yield table


@pytest.fixture
def policy(table: IndexedTable) -> Policies:
    """Makes the table's policy, with these indexes of type btree: name → columns."""

    def made(*, kind: str = "btree", rules: dict[str, Any] | None = None, **indexes: Any) -> Any:
        desired = (
            DesiredIndex(
                name,
                tuple(each if isinstance(each, Column) else Column(name=each) for each in columns),
                (kind,),
            )
            for name, columns in indexes.items()
        )
        return TablePolicy("t", table.uri, definitions=tuple(desired), **(rules or {}))

    return made


def applied(table: IndexedTable, policy: TablePolicy) -> DefinitionPlan:
    """Plans and applies; nothing fails."""
    plan = plan_of(table, policy)
    assert not apply(table, policy, plan)
    return plan


def owners(table: IndexedTable) -> dict[str, str]:
    return {each.name: each.owner for each in table.indexes()}


def test_the_fleet_creates_alters_and_keeps_its_own(table: IndexedTable, policy: Policies) -> None:
    plan = applied(table, policy(by_amount=["Amount"]))
    assert plan.sentences == (
        "Create index by_amount: btree on Amount.",
        "No base file is indexed by that at once.",
    )
    assert owners(table) == {"by_amount": "fleet"}
    assert not differences(table.indexes(), policy(by_amount=["amount"])).drift

    wider = policy(by_amount=["amount", "msg"])
    assert differences(table.indexes(), wider).drift == ("by_amount",)
    (change,) = applied(table, wider).changes
    assert change.kind == "alter"
    assert [each.name for each in table.indexes()[0].columns] == ["amount", "msg"]

    # It left the file: kept and listed, or dropped.
    assert differences(table.indexes(), policy()).left == ("by_amount",)
    assert not applied(table, policy()).changes
    applied(table, policy(rules={"on_removed": "drop"}))
    assert table.indexes() == ()


def test_other_index_types_create_it_anew(table: IndexedTable, policy: Policies) -> None:
    applied(table, policy(i=["amount"]))
    (change,) = applied(table, policy(i=["amount"], kind="lucene")).changes
    assert change.kind == "recreate"
    (index,) = table.indexes()
    assert (index.index_types, index.owner, index.version) == (("lucene",), "fleet", 3)


def test_the_order_of_a_composite_key_counts(table: IndexedTable, policy: Policies) -> None:
    def key(*names: str) -> list[Column]:
        return [Column(name=name, options={"key": "composite"}) for name in names]

    applied(table, policy(i=key("amount", "msg")))
    assert applied(table, policy(i=key("msg", "amount"))).changes
    assert not differences(table.indexes(), policy(i=key("msg", "amount"))).changes
    applied(table, policy(j=["amount", "msg"]))
    assert not differences(table.indexes(), policy(j=["msg", "amount"])).changes


def test_another_owners_definition_is_a_clash_and_stays(
    table: IndexedTable, policy: Policies
) -> None:
    by_hand = table.create_index("by_hand", ["amount"], using="btree")
    with TableUpkeep(table.uri, options={"hoodie.index.columns": "ts"}) as upkeep:
        upkeep.define()
    assert owners(table) == {"by_hand": "manual", "write_config": "write_config"}

    plan = applied(table, policy(by_hand=["msg"], write_config=["msg"]))
    assert not plan.changes
    assert [(each.name, each.owner) for each in plan.differences.clashes] == [
        ("by_hand", "manual"),
        ("write_config", "write_config"),
    ]
    assert "Index by_hand is of the owner manual" in str(plan.differences.clashes[0])
    assert table.indexes()[0] == by_hand
    # As the file has it, it is in nobody's way; and what is not in the file is not the fleet's.
    assert not differences(table.indexes(), policy(by_hand=["amount"])).clashes
    assert not differences(table.indexes(), policy(rules={"on_removed": "drop"})).changes


def test_an_index_altered_or_renamed_by_hand_stays_the_fleets(
    table: IndexedTable, policy: Policies
) -> None:
    applied(table, policy(i=["amount"]))
    table.alter_index("i", add=["msg"], rename_to="j")
    assert owners(table) == {"j": "fleet"}
    found = differences(table.indexes(), policy(j=["amount"]))
    assert [each.kind for each in found.changes] == ["alter"]


def test_an_index_that_the_table_cannot_have_holds_up_no_other(
    table: IndexedTable, policy: Policies
) -> None:
    wanted = policy(good=["amount"], wrong=["amont"])
    plan = plan_of(table, wanted)
    assert [each.name for each in plan.changes] == ["good"]
    assert isinstance(plan.invalid["wrong"], ColumnNotFound)
    apply(table, wanted, plan)
    assert owners(table) == {"good": "fleet"}


def test_a_plan_is_of_the_definitions_that_it_was_made_for(
    table: IndexedTable, policy: Policies
) -> None:
    wanted = policy(i=["amount"])
    plan = plan_of(table, wanted)
    table.create_index("i", ["msg"], using="btree")
    with pytest.raises(IndexChanged):
        apply(table, wanted, plan)
    assert owners(table) == {"i": "manual"}


def test_a_backfill_is_planned_and_built(table: IndexedTable, policy: Policies) -> None:
    wanted = policy(i=["amount"], rules={"backfill": WHOLE_BACKFILL})
    plan = applied(table, wanted)
    sizes = [each.size for each in table.hudi_table.snapshot().base_files()]
    assert (plan.files, plan.bytes) == (2, sum(sizes))
    assert plan.minutes is not None
    assert plan.sentences[-1] == f"Then 2 base files of {sum(sizes):,} bytes are indexed, in " + (
        "about 1 minute."
    )

    assert table.build(dry_run=True).due == ()
    assert len(table.build(backfill=wanted.backfill).built) == 2
    assert table.build(backfill=wanted.backfill).due == ()


def test_only_the_fleets_own_indexes_are_backfilled(table: IndexedTable, policy: Policies) -> None:
    table.create_index("by_hand", ["msg"], using="btree")
    assert table.build(backfill=WHOLE_BACKFILL, dry_run=True).due == ()


def test_the_newest_days_count_back_from_the_last_instant(
    golden: Golden, tmp_path: Path, policy: Policies
) -> None:
    with open_table(golden("four_base_files").put(tmp_path / "four")) as table:
        instants = sorted(each.instant for each in table.hudi_table.snapshot().base_files())
        wanted = TablePolicy(
            "t", table.uri, definitions=policy(i=["msg"]).definitions, backfill=timedelta(days=1)
        )
        plan = plan_of(table, wanted)
        assert instants[0][:8] == instants[-1][:8]  # all of one day
        assert plan.files == len(instants)


def test_files_older_than_the_newest_days_are_cut(table: IndexedTable) -> None:
    seen = SeenTimeline(
        start="20260305000000000", instants=("20260308120000000", "20260310070000000")
    )
    definition = table.create_index("i", ["amount"], using="btree", owner="fleet").model_copy(
        update={"seen": seen}
    )
    (file, *_) = table.hudi_table.snapshot().base_files()

    def taken(days: int, instant: str) -> bool:
        selects = selector(
            Strategy.INCREMENTAL, table.hudi_table, ["clustering"], timedelta(days=days)
        )
        return selects(definition, replace(file, instant=instant))

    newest, on_the_8th, archived = "20260310070000000", "20260308120000000", "20260304235959999"
    assert [taken(1, each) for each in (newest, on_the_8th, archived)] == [True, False, False]
    assert [taken(2, each) for each in (newest, on_the_8th, archived)] == [True, True, False]
    assert taken(6, archived)


def test_an_approval_is_for_the_plan_that_was_shown(table: IndexedTable, policy: Policies) -> None:
    plan = plan_of(table, policy(i=["amount"], rules={"backfill": WHOLE_BACKFILL}))
    cheaper = plan_of(table, policy(i=["amount"]))
    other = plan_of(table, policy(i=["msg"], rules={"backfill": WHOLE_BACKFILL}))

    assert plan.why_not_as_approved(plan.id, plan.bytes) == ""
    assert cheaper.why_not_as_approved(plan.id, plan.bytes) == ""
    grown = replace(plan, bytes=plan.bytes * 105 // 100)
    assert grown.why_not_as_approved(plan.id, plan.bytes) == ""
    assert f"{plan.bytes:,} bytes" in plan.why_not_as_approved(plan.id, plan.bytes * 9 // 10 - 9)
    assert "was another one" in other.why_not_as_approved(plan.id, plan.bytes)
    assert "was another one" in plan.why_not_as_approved("", 0)
    assert DefinitionPlan(plan.differences).why_not_as_approved(plan.id, 0) == ""


@pytest.mark.parametrize(
    ("rules", "may"),
    [
        ({}, False),
        ({"apply": "auto", "max_backfill_bytes": 1}, False),
        ({"apply": "auto", "enabled": False}, False),
        ({"apply": "auto"}, True),
    ],
)
def test_only_auto_acts_and_only_up_to_its_limit(
    table: IndexedTable, policy: Policies, rules: dict[str, Any], may: bool
) -> None:
    wanted = policy(i=["amount"], rules={"backfill": WHOLE_BACKFILL, **rules})
    assert plan_of(table, wanted).may_apply_unasked(wanted) is may


def test_without_definitions_in_a_policy_none_differs(table: IndexedTable) -> None:
    live = [table.create_index("i", ["amount"], using="btree", owner="fleet")]
    named = TablePolicy("t", table.uri, definitions=None)
    assert differences(live, named) == Differences()
    assert differences(live, TablePolicy("t", table.uri)).drift == ("i",)


def test_definitions_without_an_owner_are_read(table: IndexedTable) -> None:
    """Those of format 1.2 and before: only the name of writers' keys tells."""
    written = table.create_index("i", ["amount"], using="btree", owner="fleet")
    stored = json.loads(written.to_json())
    assert (stored["owner"], stored["format"]) == ("fleet", [1, 4])
    for name, owner in {"i": "manual", "write_config": "write_config"}.items():
        old = {key: value for key, value in stored.items() if key not in ("owner", "checksum")}
        old |= {"format": [1, 2], "name": name}
        canonical = json.dumps(old, sort_keys=True, ensure_ascii=False, separators=(",", ":"))
        old["checksum"] = "sha256:" + hashlib.sha256(canonical.encode()).hexdigest()
        read = IndexDefinition.from_json(json.dumps(old).encode(), source="old")
        assert read.owner == owner
