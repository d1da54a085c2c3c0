"""Agents that leave, a service that ends, and what breaks in between."""

import sys
from collections.abc import AsyncIterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager
from threading import Event, Semaphore
from typing import Any

import anyio
import httpx
import pytest
from anyio import create_task_group
from mcp.server.streamable_http import StreamableHTTPServerTransport

from hudi_index_service.cancellation import check
from hudi_index_service.mcp.calls import PLACES
from hudi_index_service.read.scan import Scan
from tests.fleet.agents.asking import READ, call, mcp_client, post
from tests.programs import awaited


class Endless:
    """Counts that end when nobody waits for them any more; or when a test says so."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.begun, self.ended, self.enough = Semaphore(0), Semaphore(0), Event()
        monkeypatch.setattr(Scan, "count", lambda scan: self._count())

    def _count(self) -> int:
        self.begun.release()
        try:
            while not self.enough.wait(0.01):
                check()
        finally:
            self.ended.release()
        return 1


@pytest.mark.parametrize("mode", ["2026-07-28", "legacy"])
def test_clients_that_leave_free_their_places(server, ask, monkeypatch, mode):
    endless = Endless(monkeypatch)

    async def left() -> None:
        async with create_task_group() as group:
            for _ in range(PLACES):
                group.start_soon(count)
            for _ in range(PLACES):
                assert await anyio.to_thread.run_sync(endless.begun.acquire, True, 60)
            group.cancel_scope.cancel()

    async def count() -> None:
        async with mcp_client(server, READ, mode=mode) as client:
            await client.call_tool("count_rows", {"table": "sales.messages"})

    anyio.run(left)
    for _ in range(PLACES):
        assert endless.ended.acquire(timeout=60)
    assert not ask(READ, "list_tables").is_error  # there is a place again


def test_calls_that_are_being_answered_are_answered_when_the_service_ends(server, monkeypatch):
    endless = Endless(monkeypatch)
    with ThreadPoolExecutor() as threads:
        answer = threads.submit(post, server, READ, call("count_rows", table="sales.messages"))
        assert endless.begun.acquire(timeout=60)
        ending = threads.submit(server.close)
        endless.enough.set()
        assert answer.result(60).json()["result"]["structuredContent"] == {"count": 1}
        ending.result(60)


def test_a_call_that_does_not_end_does_not_hold_up_the_end(server, monkeypatch):
    endless = Endless(monkeypatch)
    with ThreadPoolExecutor() as threads:
        answer = threads.submit(post, server, READ, call("count_rows", table="sales.messages"))
        assert endless.begun.acquire(timeout=60)
        server.close()
        assert endless.ended.acquire(timeout=60)
        assert answer.exception(60) is not None or answer.result().status_code >= 500


def test_what_breaks_off_in_the_sdk_does_not_end_the_service(server, monkeypatch, caplog):
    connect = StreamableHTTPServerTransport.connect

    @asynccontextmanager
    async def breaking(transport: Any) -> AsyncIterator[Any]:
        async with connect(transport) as streams:
            yield streams
        raise OSError("nobody expects it")

    monkeypatch.setattr(StreamableHTTPServerTransport, "connect", breaking)
    post(server, READ, call("list_tables"))
    assert awaited(lambda: "What answers agents broke off." in caplog.messages)
    monkeypatch.undo()
    assert post(server, READ, call("list_tables")).status_code == 200
    assert httpx.get(f"{server.url}/healthz").status_code == 200


def test_without_the_extra_the_address_says_what_is_missing(server, monkeypatch):
    for name in [each for each in sys.modules if each.split(".")[0] in ("mcp", "mcp_types")]:
        monkeypatch.setitem(sys.modules, name, None)
    for name in ("hudi_index_service.mcp.server", "hudi_index_service.mcp.calls"):
        monkeypatch.delitem(sys.modules, name, raising=False)
    answer = post(server, READ, call("list_tables"))
    assert (answer.status_code, answer.json()["code"]) == (501, "CONFIG_INVALID")
    assert "hudi-index-service[mcp]" in answer.json()["remedy"]
    assert httpx.get(f"{server.url}/healthz").status_code == 200
