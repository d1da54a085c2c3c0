"""Advises writer settings that make row reads cheaper: page size and codec."""

from collections.abc import Callable, Mapping, Sequence
from io import BytesIO
from time import perf_counter_ns

import pyarrow as pa
import pyarrow.parquet as pq

from hudi_index_service.hudi.files.parquet_file import Footers, open_parquet
from hudi_index_service.maintain.recommend.results import WriterAdvice
from hudi_index_service.optimizer.cost.constants import MIB, Constants
from hudi_index_service.optimizer.history.record import HistoryShape
from hudi_index_service.storage.store import Storage

_LEAST_QUERIES = 2.5
_LEAST_SAVED_MS = 1.0
_LEAST_SHARE = 0.2  # of a query's time
_SMALLER = 8  # factor; pages of a few thousand rows compress nearly as well
_LEAST_PAGE = 8 * 1024
_SAMPLE_ROWS = 20_000
_CODECS = ("zstd", "snappy")
_PLAIN = "uncompressed"
_FASTER, _LARGER = 1.5, 1.25

CodecCosts = Mapping[str, tuple[int, float]]
"""Codec → what a sample of the table's rows takes in it: bytes, and milliseconds to decode."""


def writer_settings(
    shapes: Sequence[HistoryShape],
    facts: Footers,
    constants: Constants,
    codec_costs: Callable[[Sequence[str]], CodecCosts],
) -> tuple[WriterAdvice, ...]:
    """The advice; empty if hardly any query reads rows by index.

    Args:
        codec_costs: Measures codecs on a sample of the table's rows.
    """
    queries = sum(each.sums["by_index"] for each in shapes)
    if queries < _LEAST_QUERIES:
        return ()
    read_bytes = sum(each.sums["bytes"] for each in shapes) / queries
    query_ms = sum(each.sums["index_ms"] for each in shapes) / queries
    picking_ms = read_bytes / MIB * constants.picked_mib_ms
    if picking_ms < _LEAST_SAVED_MS or picking_ms < _LEAST_SHARE * query_ms:
        return ()
    rows = sum(each.sums["rows"] for each in shapes) / queries
    pages = _page_size(facts, read_bytes, rows, picking_ms)
    codec = _codec(facts, picking_ms, codec_costs)
    return tuple(each for each in (pages, codec) if each is not None)


def _page_size(
    facts: Footers, read_bytes: float, rows: float, picking_ms: float
) -> WriterAdvice | None:
    paged_columns = {name: each for name, each in facts.columns.items() if each.pages}
    if not paged_columns or not facts.rows:
        return None
    name, largest = max(paged_columns.items(), key=lambda item: item[1].plain_bytes / item[1].pages)
    page_bytes, plain_bytes = largest.bytes / largest.pages, largest.plain_bytes / largest.pages
    value = 1 << max(0, int(plain_bytes / _SMALLER).bit_length() - 1)
    saves = picking_ms * (1 - 1 / _SMALLER)
    if value < _LEAST_PAGE or saves < _LEAST_SAVED_MS:
        return None
    evidence = {
        "page_rows": round(facts.rows / largest.pages, 1),
        "page_bytes": round(page_bytes),
        "plain_page_bytes": round(plain_bytes),
        "bytes_a_query": round(read_bytes),
        "rows_a_query": round(rows, 2),
    }
    return WriterAdvice(
        "hoodie.parquet.page.size",
        str(value),
        f"{plain_bytes:,.0f} bytes in the pages of {name}",
        evidence,
        round(saves, 2),
        f"a query reads {read_bytes:,.0f} bytes of pages for {rows:,.1f} rows, since a page of "
        f"{name} has {evidence['page_rows']:,.0f} rows and {page_bytes:,.0f} compressed bytes.",
    )


def _codec(
    facts: Footers, picking_ms: float, codec_costs: Callable[[Sequence[str]], CodecCosts]
) -> WriterAdvice | None:
    present = {codec.lower() for each in facts.columns.values() for codec in each.codecs}
    if len(present) != 1:
        return None
    (current,) = present
    costs = codec_costs([current, *(each for each in _CODECS if each != current)])
    if current not in costs:
        return None
    own_bytes, own_ms = costs[current]
    better = [
        (ms, name)
        for name, (bytes, ms) in costs.items()
        if bytes <= _LARGER * own_bytes and ms * _FASTER <= own_ms
    ]
    if not better:
        return None
    best_ms, best = min(better)
    saves = picking_ms * (1 - best_ms / own_ms)
    if saves < _LEAST_SAVED_MS:
        return None
    evidence: dict[str, float] = {}
    for name, (bytes, ms) in costs.items():
        evidence |= {f"{name}_bytes": bytes, f"{name}_ms": round(ms, 3)}
    measurements = ", ".join(
        f"{ms:,.1f} ms and {bytes:,} bytes in {name}" for name, (bytes, ms) in costs.items()
    )
    return WriterAdvice(
        "hoodie.parquet.compression.codec",
        best,
        current,
        evidence,
        round(saves, 2),
        f"a sample of the table's rows takes {measurements}.",
    )


def measured_codecs(storage: Storage, facts: Footers, codecs: Sequence[str]) -> CodecCosts:
    """Writes the first rows of a base file in memory with each codec and reads them back; takes the
    best of three times. Codecs that Arrow cannot write are left out."""
    if not facts.files:
        return {}
    base_file = facts.files[0]
    with open_parquet(storage, base_file.path, base_file.size) as file:
        batch = next(file.iter_batches(batch_size=_SAMPLE_ROWS), None)
    if batch is None:
        return {}
    sample = pa.Table.from_batches([batch])
    costs: dict[str, tuple[int, float]] = {}
    for codec in filter(_is_available, codecs):
        sink = BytesIO()
        pq.write_table(sample, sink, compression="none" if codec == _PLAIN else codec)
        times = []
        for _ in range(3):
            started = perf_counter_ns()
            pq.read_table(pa.BufferReader(sink.getvalue()), use_threads=False)
            times.append((perf_counter_ns() - started) / 1e6)
        costs[codec] = sink.tell(), min(times)
    return costs


def _is_available(codec: str) -> bool:
    try:
        return codec == _PLAIN or bool(pa.Codec.is_available(codec))
    except ValueError:
        return False
