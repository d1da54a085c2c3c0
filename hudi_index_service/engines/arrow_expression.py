"""Arrow's expressions as trees. An expression shows its parts only in what Arrow writes of it: as
Substrait, whose length doubles with each level of calls (a chain of 22 ORs takes 1.6 GB), or as it
is pickled. That is a batch of one row, whose columns are the literals, with the nodes as the
metadata of its schema, in order: ``call``, ``field_ref``, ``literal``, ``options``, ``end``
(Serialize in Arrow's compute/expression.cc).

Python gets that metadata as a dictionary, without what is there twice. So it is read here as it is
stored, in Flatbuffers: https://github.com/apache/arrow/blob/main/format/Schema.fbs
"""

from collections.abc import Iterator
from dataclasses import dataclass
from struct import unpack_from

import pyarrow as pa
import pyarrow.compute as pc

_START_OF_MESSAGE = 16  # after the file's name, a mark, and the message's length
_HEADER, _CUSTOM_METADATA, _KEY, _VALUE = 2, 2, 0, 1  # fields of Message, Schema and KeyValue


@dataclass(frozen=True, slots=True)
class Node:
    """An expression.

    Attributes:
        kind: ``column``, ``literal``, or the name of a function of Arrow.
        operands: The arguments of a function.
        path: Of a column: its name, and those of the fields below.
        value: Of a literal, its value; of a function, its options.
    """

    kind: str
    operands: "tuple[Node, ...]" = ()
    path: tuple[str, ...] = ()
    value: pa.Scalar | None = None

    def leaves(self) -> "Iterator[Node]":
        """The columns and literals in it."""
        left = [self]
        while left:
            node = left.pop()
            if not node.operands:
                yield node
            left.extend(node.operands)


def tree_of(expression: pc.Expression) -> Node:
    """The tree of an expression.

    Raises:
        pa.ArrowException, ValueError: Arrow cannot write it, or writes it in another way.
    """
    (buffer,) = expression.__reduce__()[1]
    literals = pa.ipc.open_file(buffer).read_all()
    pairs = _metadata(buffer.to_pybytes())
    options: list[pa.Scalar | None] = [None]  # of the calls that have not ended
    operands: list[list[Node]] = [[]]  # of these, so far
    for key, value in pairs:
        match key:
            case "call":
                options.append(None)
                operands.append([])
            case "options":
                options[-1] = literals.column(int(value))[0]
            case "end":
                call = Node(value, tuple(operands.pop()), value=options.pop())
                operands[-1].append(call)
            case "literal":
                operands[-1].append(Node("literal", value=literals.column(int(value))[0]))
            case "field_ref":
                operands[-1].append(Node("column", path=(value,)))
            case "nested_field_ref":
                path = [name for _, (_, name) in zip(range(int(value)), pairs, strict=False)]
                operands[-1].append(Node("column", path=tuple(path)))
            case _:
                raise ValueError(f"Arrow writes {key}")
    [[root]] = operands
    return root


def _metadata(file: bytes) -> Iterator[tuple[str, str]]:
    """The metadata of the schema in a file of Arrow."""
    message = memoryview(file)[_START_OF_MESSAGE:]
    (root,) = unpack_from("<I", message)
    schema = _target(message, _place(message, root, _HEADER))
    pairs = _target(message, _place(message, schema, _CUSTOM_METADATA))
    (count,) = unpack_from("<I", message, pairs)
    for number in range(count):
        pair = _target(message, pairs + 4 + 4 * number)
        key, value = (_place(message, pair, each) for each in (_KEY, _VALUE))
        yield _text(message, key), _text(message, value)


def _place(message: memoryview, table: int, number: int) -> int:
    """Where a field of a table is.

    Raises:
        ValueError: the table does not have it.
    """
    (back,) = unpack_from("<i", message, table)
    places = table - back
    (size,) = unpack_from("<H", message, places)
    offset = 0
    if 4 + 2 * number < size:
        (offset,) = unpack_from("<H", message, places + 4 + 2 * number)
    if not offset:
        raise ValueError(f"no field {number}")
    return table + int(offset)


def _target(message: memoryview, place: int) -> int:
    """Where what is stored elsewhere begins."""
    (offset,) = unpack_from("<I", message, place)
    return place + int(offset)


def _text(message: memoryview, place: int) -> str:
    start = _target(message, place)
    (size,) = unpack_from("<I", message, start)
    return bytes(message[start + 4 : start + 4 + size]).decode()
