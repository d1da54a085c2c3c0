"""Many clients that read at once."""

import asyncio
import json
from itertools import count
from pathlib import Path
from threading import Event, Thread
from time import perf_counter
from typing import Any
from urllib.parse import urlsplit

from benchmarks.build import log
from benchmarks.fleet import decisions
from benchmarks.fleet.hudi_writer import Table
from benchmarks.fleet.instants import SLOTS
from benchmarks.fleet.processes import pss_mib
from benchmarks.fleet.service import Service, awaited
from benchmarks.scale.tables import distinct_u

FEW, MANY = 2, 100


def many_clients(
    service: Service, table: Path, files: int, folder: Path, seconds: float
) -> dict[str, Any]:
    """Queries of two clients and of a hundred, with no build and beside builds of large tables.

    Args:
        folder: One of the service's, for the large tables.
        seconds: For which each number of clients asks.
    """
    path = f"/api/v1/tables/{service.name_of(str(table))}/rows"
    asking = _Asking(service, path, files)
    asking.measured(MANY, min(2, seconds))  # opens entries
    two = asking.measured(FEW, seconds)
    result = {"two": two, "alone": _over(asking.measured(MANY, seconds), two)}
    large = [
        Table(folder / f"large{n}", rows=decisions.ROWS, groups=decisions.FILES, links=True)
        for n in range(SLOTS)
    ]
    for each in large:
        each.create()
        for _ in range(decisions.FILES):
            each.commit()
    service.poll_every(1)
    awaited("the builds begin", lambda: _running(service) == SLOTS, 120)
    beside = asking.measured(MANY, seconds)
    beside["builds_at_the_end"] = _running(service)
    result["beside_builds"] = _over(beside, two)
    log(f"clients: {result}")
    return result


def _running(service: Service) -> int:
    return sum(each["running"] is not None for each in service.tables())


def _over(many: dict[str, Any], two: dict[str, Any]) -> dict[str, Any]:
    return {
        **many,
        "over_two": round(many["queries_a_second"] / two["queries_a_second"], 3),
        "p99_over_p50": round(many["p99_ms"] / many["p50_ms"], 2),
        "more_mib": round(many["mib"] - two["mib"], 1),
    }


class _Asking:
    """Asks for the rows of one value after the other."""

    def __init__(self, service: Service, path: str, files: int) -> None:
        self._service, self._path, self._files = service, path, files
        self._values = count()

    def measured(self, clients: int, seconds: float) -> dict[str, Any]:
        """So many clients for so long. The most memory of the service is read meanwhile."""
        stop, most = Event(), [0.0]

        def read_memory() -> None:
            while not stop.wait(0.1):
                most.append(pss_mib(self._service.pid))

        reading = Thread(target=read_memory)
        reading.start()
        taken = asyncio.run(self._all(clients, seconds))
        stop.set()
        reading.join()
        at = decisions.quantiles(taken)
        return {
            "clients": clients,
            "queries_a_second": round(len(taken) / seconds, 1),
            "p50_ms": at["median"],
            "p99_ms": at["p99"],
            "mib": max(most),
        }

    async def _all(self, clients: int, seconds: float) -> list[float]:
        end = perf_counter() + seconds
        found = await asyncio.gather(*(self._client(end) for _ in range(clients)))
        return [each for taken in found for each in taken]

    async def _client(self, end: float) -> list[float]:
        address, taken = urlsplit(self._service.url), []
        reader, writer = await asyncio.open_connection(address.hostname, address.port)
        while perf_counter() < end:
            began = perf_counter()
            writer.write(self._question(address.netloc))
            head = await reader.readuntil(b"\r\n\r\n")
            status, length = int(head.split(b" ", 2)[1]), _length(head)
            await reader.readexactly(length)
            if status != 200:
                raise SystemExit(f"a client was answered {status}")
            taken.append(1000 * (perf_counter() - began))
        writer.close()
        return taken

    def _question(self, netloc: str) -> bytes:
        value = next(self._values) * 7919 % distinct_u(self._files)
        body = json.dumps({"where": f"u = 'u{value}'", "columns": ["key", "v", "msg"]})
        return (
            f"POST {self._path} HTTP/1.1\r\nHost: {netloc}\r\nAuthorization: Bearer read\r\n"
            f"Content-Length: {len(body)}\r\n\r\n{body}"
        ).encode()


def _length(head: bytes) -> int:
    lines = head.lower().split(b"\r\n")
    return next(int(each[15:]) for each in lines if each.startswith(b"content-length:"))
