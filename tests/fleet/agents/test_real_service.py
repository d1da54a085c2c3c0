"""An agent at the real service has it build a table, in two steps."""

import re
import signal
from typing import Any

import anyio
import httpx2
import pytest
from mcp.client.client import Client
from mcp.client.streamable_http import streamable_http_client

from hudi_index_service import open_table
from hudi_index_service.fleet.web.access import Role
from tests.fleet.served import PROGRAM, SECRETS, token_file


@pytest.mark.slow
def test_the_real_service_builds_what_an_agent_has_planned(golden, tmp_path, running, monkeypatch):
    lake = tmp_path / "lake"
    with open_table(golden("hundred_base_files").put(lake / "orders")) as table:
        table.create_index("by_id", ["id"], using="btree")  # of files to come
        files = len(table.hudi_table.snapshot().base_files())
    file = tmp_path / "fleet.yaml"
    group = f"{{name: shop, include: [{lake}/*], poll: 1s, agents: change}}"
    file.write_text(f"version: 1\ngroups: [{group}]\n")
    monkeypatch.setenv("HUDI_INDEX_WEB__TOKENS", str(token_file(tmp_path)))
    service = running(PROGRAM, "serve", "--config", file, "--port", 0)
    service.stdout.readline()
    at = re.search(r"http://\S+", service.stdout.readline())
    assert at is not None

    async def built() -> None:
        http = httpx2.AsyncClient(
            headers={"authorization": f"Bearer {SECRETS[Role.OPERATE]}"}, timeout=60
        )
        async with Client(streamable_http_client(f"{at[0]}/mcp", http_client=http)) as client:

            async def called(tool: str, **arguments: Any) -> Any:
                return await client.call_tool(tool, arguments)

            (named,) = (await called("list_tables")).structured_content["tables"]
            wanted = {"table": named["name"], "change": "build", "strategy": "all"}
            planned = (await called("plan_change", **wanted)).structured_content
            assert planned["files"] == files
            plan = {"table": named["name"], "plan": planned["plan"]}
            begun = (await called("apply_change", **plan)).structured_content
            while True:
                state = await called("change_state", request=begun["request"])
                if state.structured_content["state"] not in ("waiting", "running"):
                    break
                await anyio.sleep(0.05)
            assert state.structured_content["state"] == "finished"
            assert state.structured_content["built"] == files
            described = await called("describe_table", table=named["name"])
            (index,) = described.structured_content["indexes"]
            assert index["covered"] == index["base_files"] == files
            again = await called("apply_change", **plan)
            assert again.structured_content["code"] == "PLAN_UNKNOWN"

    anyio.run(built)
    service.send_signal(signal.SIGTERM)
    assert service.wait(60) == 0
