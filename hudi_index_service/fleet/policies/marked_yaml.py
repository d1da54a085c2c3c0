"""YAML with the line of each key and value, for messages.

By the core schema of YAML 1.2: only ``true`` and ``false`` are booleans, so that a key may be
``on``, and ``22:00`` is a text, not a number to the base 60.
"""

import re
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import yaml
from yaml.nodes import MappingNode, Node, ScalarNode, SequenceNode

from hudi_index_service.wording import one_line

Path = tuple[str | int, ...]
"""Keys and positions that lead to a value."""


class Place(NamedTuple):
    """Line and column in a text, from 1."""

    line: int
    column: int


@dataclass(slots=True)
class Marked:
    """The value of a YAML text, and where its parts are.

    Attributes:
        value: Dictionaries with keys of text, lists, texts, numbers, booleans, None.
        places: Where each part begins: of a value with a key, the key.
        mistakes: What the text should not have: a place, the path, what is wrong.
    """

    value: Any = None
    places: dict[Path, Place] = field(default_factory=dict)
    mistakes: list[tuple[Path, Place, str]] = field(default_factory=list)

    def place(self, path: Path) -> Place:
        """Where a part is; for a missing one, what should hold it."""
        while path and path not in self.places:
            path = path[:-1]
        return self.places.get(path, Place(1, 1))


class _Loader(yaml.SafeLoader):
    """Resolves plain scalars by the core schema."""

    yaml_implicit_resolvers: dict[Any, Any] = {}  # noqa: RUF012 - PyYAML's own name


for _tag, _pattern, _first in (
    ("null", r"~|null|Null|NULL|", "~nN"),
    ("bool", r"true|True|TRUE|false|False|FALSE", "tTfF"),
    ("int", r"[-+]?[0-9]+|0o[0-7]+|0x[0-9a-fA-F]+", "-+0123456789"),
    ("float", r"[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?", "-+.0123456789"),
):
    _Loader.add_implicit_resolver(
        f"tag:yaml.org,2002:{_tag}", re.compile(f"(?:{_pattern})$"), [*_first, ""]
    )


def read_marked(text: str) -> Marked:
    """The value of a YAML text of one document. A text that is not YAML is one mistake."""
    marked = Marked()
    try:
        node = yaml.compose(text, Loader=_Loader)
        if node is not None:
            marked.value = _value(node, (), marked, ())
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        place = Place(mark.line + 1, mark.column + 1) if mark else Place(1, 1)
        marked.mistakes.append(((), place, f"not YAML: {one_line(error.problem)}"))
    except yaml.YAMLError as error:  # a character that YAML excludes
        position = getattr(error, "position", 0)
        place = Place(text.count("\n", 0, position) + 1, 1)
        marked.mistakes.append(((), place, f"not YAML: {one_line(error)}"))
    except RecursionError:
        marked.mistakes.append(((), Place(1, 1), "not YAML: it is nested too deeply"))
    return marked


def _value(node: Node, path: Path, marked: Marked, above: tuple[int, ...]) -> Any:
    """A node's value, and of its parts. `above` are the nodes that hold it."""
    marked.places.setdefault(path, _place(node))
    if id(node) in above:
        marked.mistakes.append((path, _place(node), "the alias is in what it stands for"))
        return None
    above = (*above, id(node))
    if isinstance(node, SequenceNode):
        return [_value(each, (*path, at), marked, above) for at, each in enumerate(node.value)]
    if isinstance(node, MappingNode):
        found: dict[str, Any] = {}
        for key_node, value_node in node.value:
            key = str(key_node.value) if isinstance(key_node, ScalarNode) else "?"
            if key in found:
                message = f"{key} is there twice, first on line {marked.place((*path, key)).line}"
                marked.mistakes.append(((*path, key), _place(key_node), message))
                continue
            marked.places[(*path, key)] = _place(key_node)
            found[key] = _value(value_node, (*path, key), marked, above)
        return found
    assert isinstance(node, ScalarNode), "there is no other kind of node"
    return _scalar(node, path, marked)


def _scalar(node: ScalarNode, path: Path, marked: Marked) -> Any:
    text = str(node.value)
    match node.tag.rpartition(":")[2]:
        case "str":
            return text
        case "null":
            return None
        case "bool":
            return text.lower() == "true"
        case "int":
            return int(text, 0) if text[:2] in ("0o", "0x") else int(text)
        case "float":
            return float(text)
        case _:
            marked.mistakes.append((path, _place(node), f"the tag {node.tag} is not known"))
            return None


def _place(node: Node) -> Place:
    return Place(node.start_mark.line + 1, node.start_mark.column + 1)
