"""A million rows by HTTP, in turn with the same rows from the service's memory."""

from pathlib import Path
from statistics import median
from time import perf_counter
from typing import Any

import httpx

from benchmarks.build import log
from benchmarks.fleet.service import Service

ROWS = 1_000_000
COLUMNS = ["key", "u", "v", "seq", "city", "amount", "msg", "price"]


def million_rows(service: Service, table: Path, scratch: Path, rounds: int) -> dict[str, Any]:
    """The seconds of each way, in turn."""
    kept = Service(
        scratch / "kept",
        table.parent,
        rules={table.parent.name: {"definitions": []}},
        command="benchmarks.doors.from_memory",
    )
    kept.poll_every(3600)
    taken: dict[str, list[float]] = {"read": [], "from_memory": []}
    try:
        kept.start()
        ways = {"read": service, "from_memory": kept}
        for way in ways.values():
            size = _received(way, table)[0]
        for turn in range(rounds):
            for name in list(ways)[:: 1 if turn % 2 else -1]:
                taken[name].append(_received(ways[name], table)[1])
    finally:
        kept.close()
    ratios = [
        memory / read for memory, read in zip(taken["from_memory"], taken["read"], strict=True)
    ]
    result = {
        "rows": ROWS,
        "columns": len(COLUMNS),
        "mib": round(size / 2**20, 1),
        "read_seconds": round(median(taken["read"]), 2),
        "from_memory_seconds": round(median(taken["from_memory"]), 2),
        "ratio": round(median(ratios), 3),
        "spread": [round(min(ratios), 3), round(max(ratios), 3)],
    }
    log(f"stream: {result}")
    return result


def _received(service: Service, table: Path) -> tuple[int, float]:
    """The bytes of the rows, and the seconds that they took."""
    question = {"columns": COLUMNS, "limit": ROWS}
    headers = {"Authorization": "Bearer read", "Accept-Encoding": "identity"}
    url = f"{service.url}/api/v1/tables/{service.name_of(str(table))}/rows"
    began, size = perf_counter(), 0
    with httpx.stream("POST", url, json=question, headers=headers, timeout=600) as answer:
        answer.raise_for_status()
        for piece in answer.iter_raw():
            size += len(piece)
    return size, perf_counter() - began
