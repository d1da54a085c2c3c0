"""What notebooks show: text and tables in HTML, with all values escaped."""

from collections.abc import Iterable, Sequence
from html import escape


def preformatted(text: str) -> str:
    """Lines of text with their spaces."""
    return f"<pre>{escape(text)}</pre>"


def table(names: Sequence[str], rows: Iterable[Sequence[object]], caption: str = "") -> str:
    """A table; lists are joined by commas."""
    head = "".join(f"<th>{escape(name)}</th>" for name in names)
    body = "".join(
        f"<tr>{''.join(f'<td>{escape(_text(value))}</td>' for value in row)}</tr>" for row in rows
    )
    title = f"<caption>{escape(caption)}</caption>" if caption else ""
    return f"<table>{title}<thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"


def _text(value: object) -> str:
    if isinstance(value, list | tuple):
        return ", ".join(map(str, value))
    return f"{value:,}" if isinstance(value, int) else str(value)
