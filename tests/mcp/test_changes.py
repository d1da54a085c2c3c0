"""An agent changes the indexes of a table in two steps, and only if its server may do that."""

import os
import sys
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import anyio
import pytest
from mcp.client.client import Client
from mcp.client.stdio import StdioServerParameters, stdio_client

from hudi_index_service import open_table
from hudi_index_service.config import Settings
from hudi_index_service.errors import PlanUnknown
from hudi_index_service.mcp.answers import Answers
from hudi_index_service.mcp.calls import Agent
from hudi_index_service.mcp.changes import MINUTES, Changes, Plans, Wanted
from hudi_index_service.mcp.own_tables import OwnChanges, OwnTables
from hudi_index_service.mcp.server import server_of
from tests.golden.table import GoldenTable
from tests.programs import awaited

CHANGING = {"plan_change", "apply_change", "change_state"}

Call = Callable[..., Any]


@pytest.fixture
def path(golden: Callable[[str], GoldenTable], tmp_path: Path) -> Path:
    """A table with an index that is not built."""
    path = tmp_path / "table"
    with open_table(golden("messages_of_users").put(path, "written")) as table:
        table.create_index("by_sender", ["sender"], using="btree")
    return path


@pytest.fixture
def name(path: Path) -> str:
    return open_table(path).name


class Clock:
    """Seconds, as a test says."""

    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def ask(path: Path, clock: Clock) -> Iterator[Call]:
    """Calls a tool of a server that may change, and returns its answer."""
    plans = Plans(clock=clock)
    settings = Settings(clean={"grace_seconds": 0})
    with (
        closing(OwnTables([str(path)], settings=settings)) as tables,
        closing(OwnChanges(tables)) as maker,
    ):

        def call(tool: str, *, caller: str = "", **arguments: Any) -> Any:
            agent = Agent(Answers(tables), Changes(maker, plans, caller))

            async def called() -> Any:
                async with Client(server_of(lambda context: agent, changes=True)) as client:
                    return await client.call_tool(tool, arguments)

            return anyio.run(called)

        yield call


def refusal(answer: Any) -> str:
    """The code of a refusal, which is all that its text says."""
    assert answer.is_error
    assert [each.text for each in answer.content] == [
        f"Refused: {answer.structured_content['code']}."
    ]
    return answer.structured_content["code"]


def ended(ask: Call, request: str) -> dict[str, Any]:
    """What becomes of a request, once it is known."""

    def look() -> dict[str, Any] | None:
        state = ask("change_state", request=request).structured_content
        return state if state["state"] not in ("waiting", "running") else None

    found = awaited(look)
    assert found is not None
    return found


def test_a_build_is_planned_and_applied(ask, path, name):
    table = open_table(path)
    planned = ask("plan_change", table=name, change="build", strategy="all").structured_content
    files = table.hudi_table.snapshot().base_files()
    assert planned["files"] == len(files) > 0
    assert planned["bytes"] == sum(each.size for each in files)
    assert not table.builds()
    begun = ask("apply_change", table=name, plan=planned["plan"]).structured_content
    state = ended(ask, begun["request"])
    assert (state["state"], state["built"]) == ("finished", len(files))
    (index,) = table.status()
    assert index.covered == index.base_files == len(files)


def test_a_clean_is_planned_and_applied(ask, path, name):
    table = open_table(path)
    table.build(strategy="all").raise_for_failures()
    table.drop_index("by_sender")
    before = bytes_of(path)
    planned = ask("plan_change", table=name, change="clean").structured_content
    assert planned["files"] > 0
    assert bytes_of(path) == before
    begun = ask("apply_change", table=name, plan=planned["plan"]).structured_content
    state = ended(ask, begun["request"])
    assert (state["state"], state["summary"]) == ("finished", f"{planned['files']} files deleted.")
    assert bytes_of(path) <= before - planned["bytes"] < before


def bytes_of(path: Path) -> int:
    """Of all that is below a table's index folder."""
    files = (path / ".hoodie" / ".index").rglob("*")
    return sum(each.stat().st_size for each in files if each.is_file())


def test_what_fails_says_why(ask, path, name):
    planned = ask("plan_change", table=name, change="build", strategy="all").structured_content
    index = path / ".hoodie" / ".index"
    (index / "btree").symlink_to(path)  # never written through
    begun = ask("apply_change", table=name, plan=planned["plan"]).structured_content
    state = ended(ask, begun["request"])
    assert (state["state"], state["built"]) == ("failed", 0)
    assert state["code"]
    assert state["remedy"]


def test_a_plan_is_applied_once_by_its_caller_for_its_table(ask, name):
    assert refusal(ask("apply_change", table=name, plan="made up")) == "PLAN_UNKNOWN"
    planned = ask("plan_change", caller="a", table=name, change="build").structured_content
    plan = planned["plan"]
    assert refusal(ask("apply_change", caller="b", table=name, plan=plan)) == "PLAN_UNKNOWN"
    assert refusal(ask("apply_change", caller="a", table="other", plan=plan)) == "PLAN_UNKNOWN"
    assert not ask("apply_change", caller="a", table=name, plan=plan).is_error
    assert refusal(ask("apply_change", caller="a", table=name, plan=plan)) == "PLAN_UNKNOWN"
    assert refusal(ask("change_state", request="made up")) == "REQUEST_UNKNOWN"


def test_an_old_plan_is_refused(ask, name, clock, path):
    young = ask("plan_change", table=name, change="build", strategy="all").structured_content
    clock.now += 60 * MINUTES
    assert refusal(ask("apply_change", table=name, plan=young["plan"])) == "PLAN_OUTDATED"
    assert not open_table(path).builds()


def test_a_plan_for_another_snapshot_or_other_indexes_is_refused(ask, golden, path, name):
    planned = ask("plan_change", table=name, change="build", strategy="all").structured_content
    open_table(path).create_index("by_ts", ["ts"], using="btree")
    assert refusal(ask("apply_change", table=name, plan=planned["plan"])) == "PLAN_OUTDATED"
    planned = ask("plan_change", table=name, change="build", strategy="all").structured_content
    golden("messages_of_users").put(path, "clustered")
    assert refusal(ask("apply_change", table=name, plan=planned["plan"])) == "PLAN_OUTDATED"
    assert not open_table(path).builds()


def test_many_plans_of_one_caller_push_out_its_own_alone(clock):
    plans = Plans(clock=clock)
    kept = plans.add("a", Wanted("t", "clean"), 1)
    first, *_ = [plans.add("b", Wanted("t", "clean"), 1) for _ in range(101)]
    assert plans.take("a", "t", kept).stamp == 1
    with pytest.raises(PlanUnknown):
        plans.take("b", "t", first)


def command(path: Path, *options: str) -> StdioServerParameters:
    program = "from hudi_index_service.cli import main; main()"
    arguments = ["-c", program, "mcp", str(path), *options]
    return StdioServerParameters(command=sys.executable, args=arguments, env=dict(os.environ))


def test_tools_that_change_are_listed_only_if_they_may_be_used(path, name):
    async def listed(*options: str) -> Any:
        async with Client(stdio_client(command(path, *options))) as client:
            planned = await client.call_tool("plan_change", {"table": name, "change": "clean"})
            return (await client.list_tools()).tools, planned

    tools, planned = anyio.run(listed)
    assert not {each.name for each in tools} & CHANGING
    assert refusal(planned) == "REQUEST_INVALID"
    tools, planned = anyio.run(listed, "--allow-changes")
    assert not planned.is_error
    hints = {each.name: each.annotations for each in tools if each.name in CHANGING}
    assert hints.keys() == CHANGING
    assert [hints[each].read_only_hint for each in sorted(hints)] == [False, True, True]
    assert hints["apply_change"].destructive_hint is True
