"""What makes an error clear to whoever made the mistake."""

import re
from dataclasses import dataclass

PYTHON = re.compile(r"=True|=\[|open_table|IndexedTable|use_index=|\w+\(\)|storage_options")
COMMANDS = re.compile(r"hudi-index (?!service)|--[a-z]")
STATEMENTS = re.compile(r"\b(OPTIMIZE TABLE|CREATE INDEX|SHOW INDEX\w*|DROP INDEX)\b")


@dataclass(frozen=True)
class Expected:
    """An error.

    Attributes:
        code: Its code.
        says: A part of its message.
        remedy: The beginning of its remedy, or a part of it.
    """

    code: str
    says: str
    remedy: str


def assert_clear(text: str, expected: Expected, *, foreign: tuple[re.Pattern[str], ...]) -> None:
    """Asserts that an error, as printed, is one line with code, message and remedy, and speaks the
    language of its interface only.

    Args:
        foreign: The words of the other interfaces.
    """
    (line,) = text.strip().split("\n")
    assert line.startswith(f"{expected.code}: ")
    assert expected.says in line
    assert expected.remedy in line.partition(expected.says)[2]
    assert line.endswith((".", "?")), "nothing is cut off"
    assert "[Errno" not in line
    assert "Traceback" not in line
    for words in foreign:
        assert not words.search(line), f"{words.search(line)} is not of this interface"
