"""Log file blocks in Hudi's format, built by hand."""

import struct
from collections.abc import Mapping

from hudi_index_service.hudi.files.log_file import BlockType


def entries(values: Mapping[int, bytes]) -> bytes:
    """A block's header or footer."""
    packed = (struct.pack(">II", key, len(value)) + value for key, value in values.items())
    return struct.pack(">I", len(values)) + b"".join(packed)


def block(
    kind: BlockType,
    content: bytes = b"",
    header: Mapping[int, bytes] | None = None,
    footer: Mapping[int, bytes] | None = None,
) -> bytes:
    """A whole block."""
    inner = (
        struct.pack(">II", 1, kind)
        + entries(header or {})
        + struct.pack(">Q", len(content))
        + content
        + entries(footer or {})
    )
    # The last length includes the magic but not itself; the first one includes neither.
    return (
        b"#HUDI#" + struct.pack(">Q", len(inner) + 8) + inner + struct.pack(">Q", len(inner) + 14)
    )
