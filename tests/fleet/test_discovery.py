"""Which tables are in the fleet, under which names, and what holds for them."""

import shutil
from collections.abc import Callable
from pathlib import Path
from textwrap import dedent

import pytest

from hudi_index_service.catalog.entry import READ_OPTIMIZED, CatalogTable
from hudi_index_service.errors import CatalogFailed, TableNotFound
from hudi_index_service.fleet.policies.discovery import Discovered, Discovery, unique_names
from hudi_index_service.fleet.policies.explain import explain
from hudi_index_service.fleet.policies.file import FleetFile, parse_fleet_file
from hudi_index_service.fleet.policies.found_before import FoundBefore
from hudi_index_service.fleet.policies.sources import DatabaseSource, Place
from hudi_index_service.storage.store import Storage
from tests.programs import Command


def parsed(text: str) -> FleetFile:
    return parse_fleet_file(dedent(text).encode(), "fleet.yaml")


def tables(found: Discovered) -> dict[str, str]:
    """Name → group."""
    return {name: policy.group for name, policy in found.tables.items()}


@pytest.fixture
def lake(tmp_path: Path) -> Path:
    """Folders that look like tables, and some that do not."""
    for name in ("eu/orders", "eu/users", "us/orders", "us/deep/er/logs", "eu/orders/sub", "_x/t"):
        (tmp_path / name / ".hoodie").mkdir(parents=True)
        (tmp_path / name / ".hoodie" / "hoodie.properties").touch()
    (tmp_path / "eu" / "plain").mkdir()
    (tmp_path / "eu" / "file").touch()
    return tmp_path


def entry(name: str, location: str | None, *, ro: bool = False) -> tuple[str, CatalogTable]:
    serde = {READ_OPTIMIZED: "true"} if ro else {}
    return name, CatalogTable(name, location is None, location, provider="hudi", serde=serde)


def test_globs_find_tables_and_names_are_unique(lake: Path) -> None:
    file = parsed(f"""\
        version: 1
        groups:
        - {{name: users, include: ["{lake}/eu/users"], owner: someone}}
        - {{name: level, include: ["{lake}/*/*"], exclude: ["{lake}/us/*"]}}
        - {{name: rest, include: ["{lake}/**", "{lake}/not/yet"]}}
        """)
    found = Discovery().discover(file)
    assert tables(found) == {
        "eu.users": "users",
        "eu.orders": "level",
        "us.orders": "rest",
        "er.logs": "rest",
        "not.yet": "rest",
    }
    assert not found.failed
    assert found.tables["eu.users"].owner == "someone"
    assert found.tables["us.orders"].uri == str(lake / "us" / "orders")


def test_a_glob_over_an_object_store() -> None:
    store = Storage("memory://fleet")
    for name in ("a/orders", "b/orders", "b/users"):
        store.create(f"{name}/.hoodie/hoodie.properties", b"x")
    file = parsed("version: 1\ngroups: [{name: g, include: ['memory://fleet/*/orders']}]")
    assert tables(Discovery().discover(file)) == {"a.orders": "g", "b.orders": "g"}


def test_a_database_of_a_catalog() -> None:
    def catalog(source: DatabaseSource) -> list[tuple[str, CatalogTable]]:
        assert (source.catalog, source.database) == ("glue", "sales")
        return [
            entry("orders_eu", "s3a://lake/orders_eu"),
            entry("orders_eu_ro", "s3://lake/orders_eu", ro=True),
            entry("orders_test", "s3://lake/orders_test"),
            entry("orders_view", None),
            entry("orders_elsewhere", "oss://lake/x"),
            entry("users", "s3://lake/users"),
        ]

    file = parsed("""\
        version: 1
        groups:
        - name: g
          include: ["glue://sales.orders_*"]
          exclude: ["glue://sales.*_test"]
        - {name: by_path, include: ["s3://lake/orders_eu"]}
        """)
    found = Discovery(catalog).discover(file)
    assert tables(found) == {"sales.orders_eu": "g"}
    policy = found.tables["sales.orders_eu"]
    assert (policy.uri, policy.catalog, policy.database, policy.table) == (
        *("s3://lake/orders_eu", "glue"),
        *("sales", "orders_eu"),
    )


def test_what_is_down_leaves_its_tables(lake: Path, caplog: pytest.LogCaptureFixture) -> None:
    is_up = True

    def catalog(source: DatabaseSource) -> list[tuple[str, CatalogTable]]:
        if not is_up:
            raise CatalogFailed("Glue does not answer.")
        return [entry("a", "s3://lake/a"), entry("b", "s3://lake/b")]

    text = f"""\
        version: 1
        groups:
        - {{name: g, include: ["glue://sales", "{lake}/eu/*"]}}
        """
    discovery = Discovery(catalog)
    before = discovery.discover(parsed(text))
    assert len(before.tables) == 4

    is_up = False
    (lake / "eu").rename(lake / "moved")
    after = discovery.discover(parsed(text + "defaults: {poll: 5m}\n"))  # even in another file
    assert tables(after) == tables(before)
    assert [(each.source, each.kept) for each in after.failed] == [
        ("glue://sales", 2),
        (f"{lake}/eu/*", 2),
    ]
    assert discovery.discover(parsed(text)).tables == before.tables
    assert caplog.text.count("Glue does not answer") == 1

    is_up = True
    assert [each.source for each in discovery.discover(parsed(text)).failed] == [f"{lake}/eu/*"]


def test_tables_of_a_catalog_outlive_the_service(tmp_path: Path) -> None:
    def up(source: DatabaseSource) -> list[tuple[str, CatalogTable]]:
        return [entry("a", "s3://lake/a")]

    def down(source: DatabaseSource) -> list[tuple[str, CatalogTable]]:
        raise CatalogFailed("Glue does not answer.")

    file = parsed("version: 1\ngroups: [{name: g, include: ['glue://sales']}]")

    def before(name: str = "fleet.yaml") -> FoundBefore:
        return FoundBefore(tmp_path / "state", Path(name))

    found = Discovery(up, before()).discover(file)
    restarted = Discovery(down, before()).discover(file)
    assert restarted.tables == found.tables
    assert [each.kept for each in restarted.failed] == [1]
    assert not Discovery(down, before("other.yaml")).discover(file).tables

    # What has left the fleet file is forgotten.
    Discovery(down, before()).discover(parsed("version: 1"))
    assert not Discovery(down, before()).discover(file).tables


def test_what_was_found_before_may_be_damaged_or_impossible_to_keep(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    before = FoundBefore(tmp_path, Path("fleet.yaml"))
    before.write({"glue://sales": (Place("s3://lake/a", "glue", "sales", "a"),)})
    (kept,) = tmp_path.iterdir()
    for damaged in (b"{", b"[1]", b'{"glue://sales": [[]]}', b'{"glue://sales": 7}'):
        kept.write_bytes(damaged)
        assert FoundBefore(tmp_path, Path("fleet.yaml")).read() == {}
    assert caplog.text.count("is left out") == 4

    (tmp_path / "file").touch()
    impossible = FoundBefore(tmp_path / "file", Path("fleet.yaml"))
    for name in "ab":
        impossible.write({name: ()})
    assert caplog.text.count("in memory alone") == 1


def test_a_known_table_costs_no_request_of_its_own_and_goes_with_its_folder(
    lake: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[str] = []
    size = Storage.size

    def counted(storage: Storage, path: str) -> int:
        asked.append(path.partition("/")[0])
        return size(storage, path)

    monkeypatch.setattr(Storage, "size", counted)
    file = parsed(f'version: 1\ngroups: [{{name: g, include: ["{lake}/eu/*"]}}]')
    discovery = Discovery()
    before = discovery.discover(file).tables
    assert asked
    asked.clear()

    assert discovery.discover(file).tables == before
    assert asked == ["plain"]  # which is none yet

    (lake / "eu" / "plain" / ".hoodie").mkdir()
    (lake / "eu" / "plain" / ".hoodie" / "hoodie.properties").touch()
    (lake / "eu" / "users" / ".hoodie" / "hoodie.properties").unlink()
    assert discovery.discover(file).tables.keys() == {"eu.orders", "eu.plain", "eu.users"}
    shutil.rmtree(lake / "eu" / "orders")
    assert discovery.discover(file).tables.keys() == {"eu.plain", "eu.users"}

    for _ in range(60):
        found = discovery.discover(file).tables
    assert found.keys() == {"eu.plain"}


def test_equal_names_take_more_of_the_place() -> None:
    assert unique_names(
        [
            Place("/a/eu/db/orders"),
            Place("/a/us/db/orders"),
            Place("/db/users"),
            Place("s3://x/users", "glue", "db", "users"),
            Place("s3://y/users", "hive://h:9083", "db", "users"),
            Place("/t"),
        ]
    ) == {
        "/a/eu/db/orders": "eu.db.orders",
        "/a/us/db/orders": "us.db.orders",
        "/db/users": "/db/users",
        "s3://x/users": "glue.db.users",
        "s3://y/users": "h:9083.db.users",
        "/t": "t",
    }


def test_a_table_is_explained(lake: Path) -> None:
    file = parsed(f"""\
        version: 1
        defaults:
          poll: 5m
        groups:
        - name: g
          include: ["{lake}/*/*", "glue://sales.o*"]
          max_orphaned: 1GiB
        """)
    found = Discovery(lambda _: [entry("orders", "s3://lake/o")]).discover(file)
    for name in ("eu.orders", str(lake / "eu" / "orders"), f"file://{lake}/eu/orders"):
        explanation = explain(file, found, name)
        assert (explanation.table, explanation.group.name) == ("eu.orders", "g")
    assert explain(file, found, "glue://sales.orders").uri == "s3://lake/o"
    values = {each.key: (each.value, each.origin) for each in explanation.values}
    assert values["max_orphaned"] == ("1GiB", "group g, line 7")
    assert values["poll"] == ("5m", "defaults, line 3")
    assert values["backfill"] == ("none", "built in")

    assert explain(file, found, f"{lake}/new/table").uri == ""
    assert explain(file, found, "glue://sales.other").group.name == "g"
    with pytest.raises(TableNotFound, match="in no group") as raised:
        explain(file, found, "eu.order")
    assert "Did you mean eu.orders?" in raised.value.remedy


@pytest.fixture
def written(tmp_path: Path) -> Callable[[str], Path]:
    """Writes a fleet file."""

    def write(text: str) -> Path:
        path = tmp_path / "fleet.yaml"
        path.write_text(dedent(text))
        return path

    return write


def test_the_command_checks_and_explains(
    lake: Path, written: Callable[[str], Path], command: Command
) -> None:
    file = written(f"version: 1\ngroups: [{{name: g, include: ['{lake}/*/*']}}]\n")
    assert command("fleet", "check", file) == f"{file}: 1 group, no mistake.\n"
    printed = command("fleet", "check", file, "--explain", "us.orders").splitlines()
    assert printed[:2] == [f"us.orders: {lake}/us/orders", "group: g"]
    assert "  enabled             true  (built in)" in printed
    assert "TABLE_NOT_FOUND" in command("fleet", "check", file, "--explain", "x.y", status=1)

    wrong = written("version: 1\ngruops: []\ndefaults: {pol: 3m}\n")
    assert command("fleet", "check", wrong, status=1) == (
        f"{wrong}: line 2: gruops: unknown key. Did you mean groups?\n"
        f"{wrong}: line 3: defaults.pol: unknown key. Did you mean poll?\n"
    )
    assert "cannot be read" in command("fleet", "check", "none.yaml", status=1)
