"""The hook: what a connection stands for, in three ways to run; and the provider's information."""

import json
from collections.abc import Callable, Iterator
from importlib.metadata import entry_points, requires
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from hudi_index_service.config import HookSettings, WebSettings
from hudi_index_service.fleet.timeline import SeenInstant
from hudi_index_service.fleet.web.access import Role
from hudi_index_service.fleet.web.application import WebServer
from tests.fleet.memory_fleet import MemoryFleet, seen
from tests.fleet.served import SALES_SECRET, SECRETS, served
from tests.golden.table import Golden
from tests.programs import ended

Connect = Callable[..., None]


@pytest.fixture
def fleet() -> MemoryFleet:
    fleet = MemoryFleet()
    fleet.add(seen("hr.people"), seen("sales.orders"))
    timeline = (
        SeenInstant("30", "clustering", completed=False),
        SeenInstant("20", "commit"),
        SeenInstant("10", "clustering"),
    )
    fleet.change("sales.orders", timeline=timeline)
    return fleet


@pytest.fixture
def url(fleet: MemoryFleet, tmp_path: Path) -> Iterator[str]:
    application = served(tmp_path, fleet).application
    server = WebServer(WebSettings(port=0), HookSettings(), lambda most: application)
    server.start()
    yield server.url
    server.close()


def test_provider_is_found_and_its_information_fits_airflows_schema(
    provider: SimpleNamespace,
) -> None:
    import airflow
    import jsonschema

    points = entry_points(group="apache_airflow_provider")
    (point,) = (each for each in points if each.value.startswith("hudi_index_airflow"))
    info = point.load()()
    schema = Path(airflow.__file__).with_name("provider_info.schema.json")
    jsonschema.validate(info, json.loads(schema.read_text()))
    (connection,) = info["connection-types"]
    for name, fields in connection["conn-fields"].items():
        assert fields["label"], name
        assert fields["schema"]["type"] == ["string", "null"], name
    assert set(provider.hook.HudiIndexHook.get_ui_field_behaviour()) == {
        *("hidden_fields", "relabeling", "placeholders")
    }


def test_airflow_makes_the_hook_of_a_connection(
    provider: SimpleNamespace, connected: Connect
) -> None:
    from airflow.providers_manager import ProvidersManager

    connected(host="https://indexes.example.com")
    manager = ProvidersManager()
    assert manager.hooks["hudi_index"].hook_class_name == "hudi_index_airflow.hook.HudiIndexHook"
    hook = provider.hook.HudiIndexHook
    assert isinstance(hook.get_hook("hudi_index_default"), hook)


def test_core_needs_no_java_no_spark_and_not_the_service() -> None:
    core = [each for each in requires("airflow-provider-hudi-index") or () if "extra" not in each]
    assert not [each for each in core if "spark" in each or "hudi" in each]
    imported = ended(
        "import hudi_index_airflow, pkgutil, sys\n"
        "for each in pkgutil.walk_packages(hudi_index_airflow.__path__, 'hudi_index_airflow.'):\n"
        "    __import__(each.name)\n"
        "print(*{'hudi_index_service', 'pyspark', 'lucene', 'pyarrow'} & sys.modules.keys(), 'end')"
    )
    assert imported.stdout.splitlines()[-1] == "end", imported.stderr


@pytest.mark.parametrize(
    ("fields", "way", "host"),
    [
        ({"host": "https://indexes.example.com"}, "service", "https://indexes.example.com"),
        (
            {"host": "indexes.example.com", "port": 7052},
            "service",
            "https://indexes.example.com:7052",
        ),
        ({"host": "localhost", "schema": "http", "port": 1}, "service", "http://localhost:1"),
        ({"host": "yarn", "extra": {"run_by": "spark-submit"}}, "spark-submit", "yarn"),
        (
            {"conn_type": "spark", "host": "spark://a", "port": 7077},
            "spark-submit",
            "spark://a:7077",
        ),
        ({"extra": {"storage_options": {"region": "eu"}}}, "worker", ""),
        ({"host": "https://indexes.example.com", "extra": {"run_by": "worker"}}, "worker", ""),
    ],
)
def test_connection_says_what_runs_it(
    provider: SimpleNamespace, connected: Connect, fields: dict[str, Any], way: str, host: str
) -> None:
    connected(**fields)
    target = provider.hook.HudiIndexHook().target
    assert (target.way, target.host) == (way, host)


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ({"host": "h", "extra": {"run_by": "magic"}}, "run_by is 'magic'. Write one of service"),
        ({"extra": {"run_by": "service"}}, "it names no host. Write the service's URL"),
        ({"host": "y", "extra": {"run_by": "spark-submit", "spark_binary": "none"}}, "none is not"),
        ({"host": "http://127.0.0.1:1"}, "SERVICE_UNAVAILABLE: No service answers at http://127"),
    ],
)
def test_wrong_connection_says_what_is_wrong(
    provider: SimpleNamespace, connected: Connect, fields: dict[str, Any], words: str
) -> None:
    connected(**fields)
    well, told = provider.hook.HudiIndexHook(patience=0).test_connection()
    assert not well
    assert words in told


def test_without_a_connection_the_worker_runs_it(provider: SimpleNamespace) -> None:
    well, told = provider.hook.HudiIndexHook().test_connection()
    assert well
    assert told.startswith("Builds run in the worker, by hudi-index-service 0.")
    well, told = provider.hook.HudiIndexHook("another").test_connection()
    assert not well
    assert "another" in told


def test_service_is_asked_for_its_tables(
    provider: SimpleNamespace, connected: Connect, url: str
) -> None:
    hook = provider.hook.HudiIndexHook
    connected(host=url, password=SECRETS[Role.READ])
    assert hook().test_connection() == (True, f"The service at {url} has 2 tables for this token.")
    connected(host=url, password=SALES_SECRET)
    assert "has 1 tables" in hook().test_connection()[1]
    connected(host=url, password="wrong")
    well, told = hook().test_connection()
    assert not well
    assert told.startswith("ACCESS_REFUSED: The token is wrong.")


def test_other_server_is_not_taken_for_a_service(
    provider: SimpleNamespace, connected: Connect, url: str
) -> None:
    connected(host=f"{url}/static", password=SECRETS[Role.READ])
    well, told = provider.hook.HudiIndexHook(patience=0).test_connection()
    assert not well
    assert told.startswith("CONFIG_INVALID: ")
    assert "is not the service of a fleet" in told


def test_instants_of_the_service_are_those_that_completed(
    provider: SimpleNamespace, connected: Connect, url: str
) -> None:
    connected(host=url, password=SECRETS[Role.READ])
    hook, instant = provider.hook.HudiIndexHook(), provider.service.Instant
    expected = [instant("20", "commit"), instant("10", "clustering")]
    assert hook.instants("sales.orders") == hook.instants("/data/sales.orders/") == expected
    assert hook.instants("hr.people") == []
    for unknown in ("sales.nothing", "/data/nothing"):
        with pytest.raises(provider.errors.TableMissing, match="TABLE_NOT_IN_FLEET"):
            hook.instants(unknown)


def test_instants_in_the_worker_are_those_of_the_timeline(
    provider: SimpleNamespace, golden: Golden, tmp_path: Path
) -> None:
    hook, table = provider.hook.HudiIndexHook(), tmp_path / "messages"
    with pytest.raises(provider.errors.TableMissing, match="TABLE_NOT_FOUND"):
        hook.instants(str(table))
    golden("messages_of_users").put(table, "clustered")
    assert [each.action for each in hook.instants(str(table))] == ["clustering", "commit"]
