"""Single calls by HTTP and by an agent, in turn with the same ones in this process."""

import asyncio
import os
import sys
from collections.abc import Callable, Coroutine
from contextlib import AsyncExitStack
from itertools import count
from pathlib import Path
from statistics import median
from time import perf_counter
from typing import Any

import httpx
import httpx2
from mcp import ClientSession, StdioServerParameters, stdio_client
from mcp.client.client import Client
from mcp.client.streamable_http import streamable_http_client

from benchmarks.bench_table import ROOT
from benchmarks.build import log
from benchmarks.fleet.service import Service
from benchmarks.scale.tables import distinct_u
from hudi_index_service import open_table
from hudi_index_service.table import IndexedTable

COLUMNS = ["key", "v", "msg"]

Call = Callable[[str], Coroutine[Any, Any, object]]


def calls(service: Service, table: Path, files: int, number: int) -> dict[str, Any]:
    """The medians of each kind of call, and their difference to those in the process."""
    return asyncio.run(_calls(service, table, files, number))


async def _calls(service: Service, table: Path, files: int, number: int) -> dict[str, Any]:
    async with AsyncExitStack() as stack:
        here = stack.enter_context(open_table(table))
        client = await stack.enter_async_context(_client(service))
        server = StdioServerParameters(
            command=sys.executable,
            args=["-m", "hudi_index_service", "mcp", str(table)],
            env={**os.environ, "PYTHONPATH": str(ROOT)},
        )
        session = await stack.enter_async_context(
            ClientSession(*await stack.enter_async_context(stdio_client(server)))
        )
        await session.initialize()
        http = httpx2.AsyncClient(headers={"Authorization": "Bearer read"}, timeout=60)
        remote = await stack.enter_async_context(
            Client(streamable_http_client(f"{service.url}/mcp", http_client=http))
        )
        name = service.name_of(here.uri)
        ways = {
            "process": _in_process(here),
            "http": _by_http(client, f"/api/v1/tables/{name}"),
            "mcp": _by_agent(session, here.name),
            "mcp_by_http": _by_agent(remote, name),
        }
        values = count()
        for kind in ways["process"]:  # opens entries and connections
            for way in ways.values():
                for _ in range(20):
                    await way[kind](_condition(next(values), files))
        result: dict[str, Any] = {way: {} for way in ways}
        for kind in ways["process"]:
            taken: dict[str, list[float]] = {way: [] for way in ways}
            for turn in range(number):
                for place in range(len(ways)):  # each round begins with the next one
                    way = list(ways)[(turn + place) % len(ways)]
                    condition = _condition(next(values), files)
                    began = perf_counter()
                    await ways[way][kind](condition)
                    taken[way].append(1000 * (perf_counter() - began))
            for way, each in taken.items():
                result[way][f"{kind}_ms"] = round(median(each), 2)
    for way in ("http", "mcp", "mcp_by_http"):
        more = [result[way][kind] - result["process"][kind] for kind in result["process"]]
        result[way]["worst_ms"] = round(max(more), 2)
    log(f"calls: {result}")
    return result


def _client(service: Service) -> httpx.AsyncClient:
    headers = {"Authorization": "Bearer read"}
    return httpx.AsyncClient(base_url=service.url, headers=headers, timeout=60)


def _condition(number: int, files: int) -> str:
    return f"u = 'u{number * 7919 % distinct_u(files)}'"


def _in_process(table: IndexedTable) -> dict[str, Call]:
    async def count_rows(where: str) -> object:
        return table.scan(where).count()

    async def rows(where: str) -> object:
        return table.scan(where, columns=COLUMNS).to_arrow()

    return {"count": count_rows, "rows": rows}


def _by_http(client: httpx.AsyncClient, path: str) -> dict[str, Call]:
    async def asked(what: str, **fields: object) -> object:
        answer = await client.post(f"{path}/{what}", json=fields)
        answer.raise_for_status()
        return answer.content

    async def count_rows(where: str) -> object:
        return await asked("count", where=where)

    async def rows(where: str) -> object:
        return await asked("rows", where=where, columns=COLUMNS)

    return {"count": count_rows, "rows": rows}


def _by_agent(session: ClientSession | Client, name: str) -> dict[str, Call]:
    async def called(tool: str, **arguments: object) -> object:
        answer = await session.call_tool(tool, {"table": name, **arguments})
        if answer.is_error:
            raise SystemExit(f"{tool}: {answer.structured_content}")
        return answer

    async def count_rows(where: str) -> object:
        return await called("count_rows", where=where)

    async def rows(where: str) -> object:
        return await called("query_rows", where=where, columns=COLUMNS)

    return {"count": count_rows, "rows": rows}
