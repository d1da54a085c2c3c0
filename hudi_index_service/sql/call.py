"""CALL statements: writes calls of Hudi's procedures safely, and finds a table service's table.

Hudi fires no commit callback for a table service that a procedure runs, so a CALL through the
service also wakes the build.
"""

import re
from collections.abc import Mapping
from decimal import Decimal
from math import isfinite

from hudi_index_service.errors import PredicateInvalid, PredicateUnsupported, StatementInvalid
from hudi_index_service.predicate.text.lex import Token, name_value, string_value, tokenize
from hudi_index_service.sql.grammar import TableName, TablePath, TableReference, first_words

# Procedure → positions of its arguments: RunClusteringProcedure and RunCompactionProcedure, Hudi
# 0.15 to 1.2.
_TABLE_SERVICES = {
    "run_clustering": {"table": 0, "path": 1},
    "run_compaction": {"table": 1, "path": 2},
}
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*(\.[A-Za-z_][A-Za-z0-9_]*)*")
# Includes the brace, because Spark substitutes variables, ${name}, even within literals.
_QUOTED = str.maketrans(
    {"\\": r"\\", "'": r"\'", "{": r"\{", "\n": r"\n", "\r": r"\r", "\t": r"\t", "\0": r"\0"}
)
_DIGITS = 400  # before the point, or after it: more than any double has

Argument = str | bool | int | float | Decimal


def is_call(query: str) -> bool:
    """Whether a statement begins with CALL."""
    return first_words(query, 1) == ("CALL",)


def call_statement(procedure: str, arguments: Mapping[str, Argument]) -> str:
    """The CALL statement, with every value as an escaped literal.

    Raises:
        StatementInvalid: an invalid name, or a value that has no literal.
    """
    if not _NAME.fullmatch(procedure):
        raise StatementInvalid(
            f"{procedure!r} is not a procedure name.",
            remedy="Name one of Hudi's procedures, such as run_clustering, or a CALL statement.",
        )
    named_arguments = ", ".join(
        f"{_name(key)} => {_literal(key, arguments[key])}" for key in arguments
    )
    return f"CALL {procedure}({named_arguments})"


def serviced_table(query: str) -> TableReference | None:
    """The table of a CALL of run_clustering or run_compaction; None for every other statement, and
    if the table cannot be determined. Spark validates the statement."""
    try:
        *tokens, _ = tokenize(query)
        while tokens and tokens[-1].text == ";":
            tokens.pop()
        opening = next((place for place, token in enumerate(tokens) if token.text == "("), 0)
        if opening < 2 or tokens[-1].text != ")":
            return None
        procedure = "".join(map(name_value, tokens[1:opening]))
        return serviced_table_of(procedure, _arguments(tokens[opening + 1 : -1]))
    except (PredicateInvalid, PredicateUnsupported):
        return None


def serviced_table_of(procedure: str, arguments: Mapping[str, Argument]) -> TableReference | None:
    """The table of a procedure with arguments keyed by name or by position, such as "0"."""
    positions = _TABLE_SERVICES.get(procedure.rpartition(".")[2].lower())
    if positions is None:
        return None
    strings = {key.lower(): value for key, value in arguments.items() if isinstance(value, str)}
    reference = {each: strings.get(each) or strings.get(str(positions[each])) for each in positions}
    if reference["table"]:
        return TableName(tuple(reference["table"].split(".")))
    return TablePath(reference["path"]) if reference["path"] else None


def _arguments(tokens: list[Token]) -> dict[str, str]:
    """The arguments that are plain strings, keyed by name or position."""
    arguments: dict[str, str] = {}
    position, depth = 0, 0
    argument: list[Token] = []
    for token in [*tokens, None]:
        if token is not None and (depth > 0 or token.text != ","):
            depth += {"(": 1, ")": -1}.get(token.text, 0)
            argument.append(token)
            continue
        match argument:
            case [Token("string") as value]:
                arguments[str(position)] = string_value(value)
            case [name, Token(_, "="), Token(_, ">"), Token("string") as value]:
                arguments[name_value(name).lower()] = string_value(value)
        position, argument = position + 1, []
    return arguments


def _name(key: str) -> str:
    if not _NAME.fullmatch(key) or "." in key:
        raise StatementInvalid(f"{key!r} is not an argument name.")
    return key


def _literal(key: str, value: Argument) -> str:
    match value:
        case bool():
            return "true" if value else "false"
        case str():
            return f"'{value.translate(_QUOTED)}'"
        case int() if abs(value) < 10**_DIGITS:
            return str(value)
        case Decimal() | float() if isfinite(value) and abs(Decimal(value).adjusted()) <= _DIGITS:
            return format(Decimal(str(value)), "f")
        case _:
            raise StatementInvalid(
                f"Argument {key}, a {type(value).__name__}, cannot be written in SQL.",
                remedy=f"Pass text, a number of at most {_DIGITS} digits, True or False.",
            )
