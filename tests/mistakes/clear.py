"""What makes an error clear to whoever made the mistake."""

import re

PYTHON = re.compile(r"=True|=\[|open_table|IndexedTable|use_index=|\w+\(\)|storage_options")
COMMANDS = re.compile(r"hudi-index (?!service)|--[a-z]")
STATEMENTS = re.compile(r"\b(OPTIMIZE TABLE|CREATE INDEX|SHOW INDEX\w*|DROP INDEX)\b")


def assert_clear(
    text: str, code: str, says: str, remedy: str, *, foreign: tuple[re.Pattern[str], ...]
) -> None:
    """Asserts that an error, as printed, is one line with code, message and remedy, and speaks the
    language of its interface only.

    Args:
        code: Its code.
        says: A part of its message.
        remedy: The beginning of its remedy, or a part of it.
        foreign: The words of the other interfaces.
    """
    (line,) = text.strip().split("\n")
    assert line.startswith(f"{code}: ")
    assert says in line
    assert remedy in line.partition(says)[2]
    assert line.endswith((".", "?")), "nothing is cut off"
    assert "[Errno" not in line
    assert "Traceback" not in line
    for words in foreign:
        assert not words.search(line), f"{words.search(line)} is not of this interface"
