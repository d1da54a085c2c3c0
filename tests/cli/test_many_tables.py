"""`hudi-index status` and `doctor` of several tables, and of folders with tables; owners in
`hudi-index show`."""

import csv
import json
from pathlib import Path

import pytest

from hudi_index_service import open_table
from hudi_index_service.index.metadata.definitions import FLEET
from tests.golden.table import Golden
from tests.programs import Command


@pytest.fixture
def lake(golden: Golden, tmp_path: Path) -> Path:
    """A folder with two tables; the first has an index that is not built."""
    for name in ("sales/orders", "returns"):
        golden("two_partitions").put(tmp_path / "lake" / name, "written")
    with open_table(tmp_path / "lake" / "sales" / "orders") as table:
        table.create_index("by_amount", ["amount"], using="btree")
    return tmp_path / "lake"


def test_the_status_of_a_folder_is_that_of_its_tables(lake: Path, command: Command) -> None:
    reports = json.loads(command("status", lake, "-o", "json"))
    orders = json.loads(command("status", lake / "sales/orders", "-o", "json"))

    assert [each["table"] for each in reports] == [f"{lake}/returns", f"{lake}/sales/orders"]
    assert reports[1]["indexes"] == orders["indexes"]
    text = command("status", lake / "sales/orders", lake / "returns").splitlines()
    assert text[:2] == [f"{lake}/sales/orders:", "  Index by_amount (btree) on amount:"]
    assert f"{lake}/returns:" in text
    rows = list(csv.DictReader(command("status", lake, "-o", "csv").splitlines()))
    assert [(each["table"], each["index"]) for each in rows] == [
        (f"{lake}/sales/orders", "by_amount")
    ]


def test_one_table_that_cannot_be_read_leaves_the_others(lake: Path, command: Command) -> None:
    status = ("status", lake, lake / "gone")
    printed = command(*status, status=1)
    assert f"{lake}/gone: TABLE_NOT_FOUND: " in printed
    assert "Index by_amount" in printed
    reports, _ = json.JSONDecoder().raw_decode(command(*status, "-o", "json", status=1))
    assert reports[-1]["error"]["code"] == "TABLE_NOT_FOUND"


def test_an_alert_names_its_table(lake: Path, command: Command) -> None:
    printed = command("status", lake, "--min-coverage", 90, status=3)

    assert f"ALERT: {lake}/sales/orders: Index by_amount (btree) covers 0 of 2" in printed


def test_doctor_checks_the_installation_once_and_each_table(lake: Path, command: Command) -> None:
    reports = json.loads(command("doctor", lake, "-o", "json"))

    assert [each["table"] for each in reports] == [None, f"{lake}/returns", f"{lake}/sales/orders"]
    names = [[check["name"] for check in each["checks"]] for each in reports]
    assert names[1:] == [["table", "base files", "writing"]] * 2
    assert not set(names[0]) & set(names[1])
    text = command("doctor", lake, lake / "gone", status=1)
    assert text.count("Java:") == 1
    assert f"{lake}/returns:\n  ok  " in text


def test_show_tells_the_owner_of_what_no_user_created(lake: Path, command: Command) -> None:
    orders = lake / "sales" / "orders"
    show = ("show", orders, "-o")
    assert "owner" not in command(*show, "text")
    assert json.loads(command(*show, "json"))["owner"] == "manual"
    with open_table(orders) as table:
        table.create_index("by_id", ["id"], using="btree", owner=FLEET)
    assert "│ fleet " in command(*show, "text")
