"""Many writers call at once."""

import asyncio
import json
from collections import Counter
from collections.abc import Sequence
from threading import Event, Thread
from time import perf_counter
from typing import Any
from urllib.parse import urlsplit

from benchmarks.build import log
from benchmarks.fleet.hudi_writer import Table
from benchmarks.fleet.processes import pss_mib
from benchmarks.fleet.service import Service, awaited

CLIENTS = 200


def many_callbacks(service: Service, tables: Sequence[Table], callbacks: int) -> dict[str, Any]:
    """Commits to all tables, and callbacks of many clients at once, each over a connection of its
    own, as Hudi's writers open them. The service's own memory is read meanwhile."""
    before = pss_mib(service.pid)
    most, stop = [before], Event()

    def read_memory() -> None:
        while not stop.wait(0.05):
            most.append(pss_mib(service.pid))

    reading = Thread(target=read_memory)
    for table in tables:
        table.commit()
    reading.start()
    began = perf_counter()
    answers, slowest = asyncio.run(_call(service.url, [each.uri for each in tables], callbacks))
    seconds = perf_counter() - began
    built = awaited("all is built", service.is_built, 300)
    stop.set()
    reading.join()
    result = {
        "callbacks": callbacks,
        "clients": CLIENTS,
        "seconds": round(seconds, 2),
        "slowest_seconds": round(slowest, 2),
        "answers": {str(status): number for status, number in sorted(answers.items())},
        "others": sum(number for status, number in answers.items() if status not in (202, 503)),
        "more_mib": round(max(most) - before, 1),
        "seconds_until_built": round(built, 1),
        "builds_lost": service.unindexed(tables),
    }
    log(f"callbacks: {result}")
    return result


async def _call(url: str, tables: Sequence[str], callbacks: int) -> tuple[Counter[int], float]:
    """The answers by status (0 for none), and the seconds of the slowest one."""
    address = urlsplit(url)
    answers, slowest = Counter[int](), 0.0

    async def client(number: int) -> None:
        nonlocal slowest
        for turn in range(number, callbacks, CLIENTS):
            began = perf_counter()
            answers[await _callback(address.netloc, tables[turn % len(tables)])] += 1
            slowest = max(slowest, perf_counter() - began)

    await asyncio.gather(*map(client, range(CLIENTS)))
    return answers, slowest


async def _callback(netloc: str, table: str) -> int:
    host, _, port = netloc.partition(":")
    body = json.dumps({"commitTime": "1", "tableName": "bench", "basePath": table})
    head = (
        f"POST /hudi/commit HTTP/1.1\r\nHost: {netloc}\r\nAuthorization: Bearer notify\r\n"
        f"Content-Length: {len(body)}\r\nConnection: close\r\n\r\n"
    )
    try:
        reader, writer = await asyncio.open_connection(host, int(port))
        writer.write((head + body).encode())
        answer = await reader.read()
        writer.close()
        return int(answer.split(b" ", 2)[1])
    except (OSError, IndexError):
        return 0
