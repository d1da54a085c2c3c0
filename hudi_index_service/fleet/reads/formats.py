"""The formats of rows by HTTP, and their compression, piece by piece: a long answer is never in
memory as a whole."""

import zlib
from collections.abc import Callable, Generator, Iterable, Sequence
from dataclasses import dataclass
from typing import TypeAlias

import pyarrow as pa

from hudi_index_service.read.freshness import FAST
from hudi_index_service.row_formats import cell_text, csv_line, json_text, python_rows

Batches: TypeAlias = Iterable[pa.RecordBatch]


class _Pieces:
    """A file that gives what was written since it was last asked."""

    closed = False

    def __init__(self) -> None:
        self._written = bytearray()

    def write(self, data: bytes) -> int:
        """Keeps a copy."""
        self._written += data
        return len(data)

    def flush(self) -> None:
        """Does nothing."""

    def close(self) -> None:
        """Does nothing: the last piece is still to be taken."""

    def take(self) -> bytes:
        """What was written."""
        piece, self._written = bytes(self._written), bytearray()
        return piece


@dataclass(frozen=True, slots=True)
class RowFormat:
    """A format of rows.

    Attributes:
        media_type: As in the headers Accept and Content-Type.
        encode: The pieces of an answer, the first of them without rows.
        says_fast: Whether it has a place to say what a fast answer leaves out.
    """

    media_type: str
    encode: Callable[[pa.Schema, Batches], Generator[bytes]]
    says_fast: bool = True


def _arrow(schema: pa.Schema, batches: Batches) -> Generator[bytes]:
    pieces = _Pieces()
    with pa.ipc.new_stream(pa.PythonFile(pieces, "w"), schema) as writer:
        yield pieces.take()
        for batch in batches:
            writer.write_batch(batch)
            yield pieces.take()
    yield pieces.take()


def _json_lines(schema: pa.Schema, batches: Batches) -> Generator[bytes]:
    yield b""
    for batch in batches:
        rows = (
            json_text(dict(zip(schema.names, row, strict=True))) for row in python_rows([batch])
        )
        yield "".join(f"{row}\n" for row in rows).encode("utf-8", "backslashreplace")
    if said := (schema.metadata or {}).get(FAST.encode()):
        yield b'{"%s": %s}\n' % (FAST.encode(), said)


def _csv(schema: pa.Schema, batches: Batches) -> Generator[bytes]:
    yield f"{csv_line(schema.names)}\r\n".encode("utf-8", "backslashreplace")
    for batch in batches:
        rows = (map(_csv_text, row) for row in python_rows([batch]))
        yield "".join(f"{csv_line(row)}\r\n" for row in rows).encode("utf-8", "backslashreplace")


def _csv_text(value: object) -> str | None:
    return None if value is None else cell_text(value)


ARROW = RowFormat("application/vnd.apache.arrow.stream", _arrow)
JSON_LINES = RowFormat("application/x-ndjson", _json_lines)
CSV = RowFormat("text/csv; charset=utf-8", _csv, says_fast=False)

FORMATS: Sequence[RowFormat] = (ARROW, JSON_LINES, CSV)
"""The preferred one first."""

_ALSO = {"application/jsonl": JSON_LINES, "application/json": JSON_LINES}


def format_for(accept: str) -> RowFormat | None:
    """The format that a header Accept likes best; None if it names none of them.

    Args:
        accept: The header; "" if there is none, which takes anything.
    """
    known = {each.media_type.partition(";")[0]: each for each in FORMATS} | _ALSO
    for name in _wanted(accept or "*/*"):
        if name in known:
            return known[name]
        kind, _, any_of_it = name.partition("/")
        for each in FORMATS if any_of_it == "*" else ():
            if kind in ("*", each.media_type.partition("/")[0]):
                return each
    return None


def compression_for(accept_encoding: str) -> str | None:
    """The first of zstd and gzip that a header Accept-Encoding names; None without."""
    wanted = _wanted(accept_encoding)
    return next((name for name in ("zstd", "gzip") if name in wanted), None)


def compressed(pieces: Iterable[bytes], codec: str) -> Generator[bytes]:
    """The pieces compressed, each so that it can be read before the next comes."""
    return _gzipped(pieces) if codec == "gzip" else _by_arrow(pieces, codec)


def _gzipped(pieces: Iterable[bytes]) -> Generator[bytes]:
    # Arrow compresses by level 9: a fourteenth of the pace for an eighth less.
    gzip = zlib.compressobj(level=1, wbits=16 + zlib.MAX_WBITS)
    for piece in pieces:
        yield gzip.compress(piece) + gzip.flush(zlib.Z_SYNC_FLUSH)
    yield gzip.flush()


def _by_arrow(pieces: Iterable[bytes], codec: str) -> Generator[bytes]:
    out = _Pieces()
    with pa.CompressedOutputStream(pa.PythonFile(out, "w"), codec) as stream:
        for piece in pieces:
            stream.write(piece)
            stream.flush()
            yield out.take()
    yield out.take()


def _wanted(header: str) -> list[str]:
    """The names in a header with qualities, the best first; those with the quality 0 left out."""
    wanted: list[tuple[float, str]] = []
    for part in header.split(","):
        name, *parameters = (each.strip().lower() for each in part.split(";"))
        quality = next((each[2:] for each in parameters if each.startswith("q=")), "1")
        try:
            wanted.append((float(quality), name))
        except ValueError:
            continue
    return [name for q, name in sorted(wanted, key=lambda each: -each[0]) if name and q > 0]
