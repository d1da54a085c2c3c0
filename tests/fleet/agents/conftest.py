"""Agents at a service: a server over real HTTP, of a fleet in memory whose tables are real."""

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import anyio
import pytest

from hudi_index_service.config import HookSettings, Settings, WebSettings
from hudi_index_service.fleet.reads.tables import ReadTables
from hudi_index_service.fleet.web.agents import Agents
from hudi_index_service.fleet.web.application import WebServer
from tests.fleet.agents.asking import HOSTILE, ORIGIN, Ask, mcp_client
from tests.fleet.memory_fleet import MemoryFleet, seen
from tests.fleet.served import served
from tests.indexed import GoldenIndex


@pytest.fixture
def path(golden_index: GoldenIndex) -> Path:
    return golden_index("messages_of_users", ("sender",), using="btree")


@pytest.fixture
def fleet(path: Path) -> MemoryFleet:
    fleet, uri = MemoryFleet(), str(path)
    fleet.add(
        seen("sales.messages", uri=uri, agents="change"),
        seen("hr.people", uri=uri),
        seen("sales.unread", uri=uri, reads=False),
        seen("sales.closed", uri=uri, agents="none"),
        seen(HOSTILE, uri=uri),
    )
    return fleet


@pytest.fixture
def server(fleet: MemoryFleet, tmp_path: Path) -> Iterator[WebServer]:
    settings = WebSettings(port=0, origins=(ORIGIN,))
    tables = ReadTables(Settings())
    agents = Agents(settings, tables)
    made = served(
        tmp_path,
        fleet,
        more_routes=lambda requests, gate, _: agents.routes(requests, gate),
        running=agents.running,
    )
    server = WebServer(settings, HookSettings(), lambda most: made.application)
    server.start()
    with closing(server), closing(tables):
        yield server


@pytest.fixture
def ask(server: WebServer) -> Ask:
    """Calls a tool."""

    def call(secret: str, tool: str, **arguments: Any) -> Any:
        async def called() -> Any:
            async with mcp_client(server, secret) as client:
                return await client.call_tool(tool, arguments)

        return anyio.run(called)

    return call
