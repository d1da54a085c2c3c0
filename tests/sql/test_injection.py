"""Hostile text as every name and every literal of every statement: it is exactly that name or
literal, or the statement fails, and nothing else changes."""

import shutil
from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from typing import Any

import pytest

from hudi_index_service import open_table
from hudi_index_service.columns import column_name
from hudi_index_service.errors import IndexServiceError, StatementInvalid
from hudi_index_service.index.metadata.definitions import Column
from hudi_index_service.sql.call import call_statement
from hudi_index_service.sql.statements import parse_statement

pytestmark = pytest.mark.fast

HOSTILE = [
    "x'; DROP TABLE t; --",
    "double \" and it's",
    "a`b``c",
    "i ON t; DROP TABLE t",
    "*/ DROP INDEX i ON t /*",
    "-- comment",
    "/* open",
    "${spark.app.name} ${env:HOME} {t} :p ? %s",
    "{# jinja #}{% x %}{{ y }}",
    "line\nbreak\r\n\ttab\v\f",
    "nul\0nul",
    "back\\slash\\",
    "\\' OR 1=1 --",
    "../../../etc/passwd",
    "a.b.c",
    "PURGE",
    "USING lucene (id)",
    "\u0455\u04bb\u043ew \uff24\uff32\uff2f\uff30 \u212a \u0131 \u017f",  # look-alikes
    "\u202eright to left\u2066\u200b\ufeff\u00a0",
    "žluťoučký 馬 🐎",
    "e\u0301",
    "x" * 70_000,
]

# {n} is a name, {c} a column name.
NAMES = [
    "CREATE INDEX {n} ON t USING lucene (a)",
    "CREATE INDEX IF NOT EXISTS i ON {n} USING lucene (a)",
    "CREATE INDEX i ON TABLE {n}.{n} USING lucene (a)",
    "CREATE INDEX i ON {n}.{n}.{n} USING lucene (a)",
    "CREATE INDEX i ON t USING {n}, lucene, {n} (a)",
    "CREATE INDEX i ON t USING lucene (a, {c} OPTIONS(k='v'), s.{c}.f)",
    "CREATE INDEX i ON t USING lucene (a OPTIONS({n} = 1)) OPTIONS({n} = 'v')",
    "ALTER INDEX {n} ON {n} ADD ({c})",
    "ALTER INDEX i ON t DROP ({c}, b)",
    "ALTER INDEX i ON t SET ({c} OPTIONS({n} = true))",
    "ALTER INDEX i ON t SET OPTIONS({n} = 'v')",
    "ALTER INDEX i ON t RENAME TO {n}",
    "DROP INDEX IF EXISTS {n} ON {n} PURGE",
    "DROP INDEX ON {n} ({c}, b)",
    "SHOW INDEXES FROM {n}.{n}",
    "REFRESH INDEX {n} ON TABLE {n}",
    "OPTIMIZE TABLE {n} STRATEGY ALL DRY RUN",
    "SHOW INDEXING {n} BUILD 1",
    "CANCEL INDEXING {n}",
]
TEXTS = [
    "CREATE INDEX i ON {0} USING lucene (a OPTIONS({0} = {0})) OPTIONS(b = {0})",
    "ALTER INDEX i ON {0} ADD (a OPTIONS(k = {0})) SET OPTIONS({0} {0})",
    "DROP INDEX i ON {0} PURGE",
    "SHOW INDEXES IN {0}",
    "REFRESH INDEX i ON {0}",
    "OPTIMIZE TABLE {0} DRY RUN",
    "SHOW INDEXING {0}",
    "CANCEL INDEXING {0}",
]


def name(text: str) -> str:
    return "`" + text.replace("`", "``") + "`"


def literal(text: str) -> str:
    return call_statement("p", {"a": text}).removeprefix("CALL p(a => ").removesuffix(")")


def renamed(value: Any, names: Mapping[str, str]) -> Any:
    """A parsed statement with its names replaced."""
    match value:
        case str():
            return ".".join(names.get(part, part) for part in value.split("."))
        case Column():
            return Column(name=renamed(value.name, names), options=renamed(value.options, names))
        case tuple() | list():
            return type(value)(renamed(each, names) for each in value)
        case Mapping():
            return {renamed(key, names): renamed(value[key], names) for key in value}
        case _ if is_dataclass(value) and not isinstance(value, type):
            return type(value)(
                **{each.name: renamed(getattr(value, each.name), names) for each in fields(value)}
            )
        case _:
            return value


@pytest.mark.parametrize("statement", NAMES)
def test_back_quoted_text_is_one_name(statement):
    plain = parse_statement(statement.format(n="name", c="column"))
    for text in HOSTILE:
        found = parse_statement(statement.format(n=name(text), c=name(text)))
        assert found == renamed(plain, {"name": text, "column": column_name([text])})


@pytest.mark.parametrize("statement", TEXTS)
def test_quoted_text_is_one_literal(statement):
    plain = parse_statement(statement.format("'text'"))
    for text in HOSTILE:
        assert parse_statement(statement.format(literal(text))) == renamed(plain, {"text": text})


@pytest.mark.parametrize("statement", [*NAMES, *TEXTS])
def test_unescaped_quote_is_refused(statement):
    for text in HOSTILE[:4]:
        for quote in ("`", "'", '"'):
            broken = f"{quote}{text}{quote}"
            if quote in text:
                with pytest.raises(StatementInvalid):
                    parse_statement(statement.format(broken, n=broken, c=broken))


@pytest.mark.parametrize("statement", [*NAMES, *TEXTS])
@pytest.mark.parametrize("text", ["a b", "a-b", "$x", "${x}", "{x}", "é", "a\0b", ";", "(", "1.5"])
def test_unquoted_text_that_is_no_name_is_refused(statement, text):
    with pytest.raises(StatementInvalid):
        parse_statement(statement.format(text, n=text, c=text))


def state(messages) -> dict[str, bytes]:
    """The contents of all files of the table."""
    return {str(path): path.read_bytes() for path in messages.rglob("*") if path.is_file()}


@pytest.mark.parametrize(
    "texts", [HOSTILE[:3], pytest.param(HOSTILE[3:], marks=pytest.mark.slow)], ids=["few", "others"]
)
def test_hostile_statements_change_nothing_on_a_real_table(session, messages, texts):
    session.sql(f"CREATE INDEX mine ON {messages.name} USING lucene (id)")
    tables = session.spark.sql("SHOW TABLES").collect()
    before = state(messages)
    statements = [
        "CREATE INDEX {} ON {t} USING lucene (id)",
        "CREATE INDEX i ON {} USING lucene (id)",
        "CREATE INDEX i ON {t} USING {} (id)",
        "CREATE INDEX i ON {t} USING lucene ({})",
        "CREATE INDEX i ON {t} USING lucene (id OPTIONS({} = 'v'))",
        "ALTER INDEX {} ON {t} SET OPTIONS(analyzer = 'standard')",
        "ALTER INDEX mine ON {t} ADD ({})",
        "ALTER INDEX mine ON {t} DROP ({})",
        "ALTER INDEX mine ON {t} SET OPTIONS({} = 'v')",
        "ALTER INDEX mine ON {t} RENAME TO {}",
        "DROP INDEX {} ON {t} PURGE",
        "DROP INDEX mine ON {}.{} PURGE",
        "DROP INDEX ON {t} ({}) PURGE",
        "OPTIMIZE TABLE {} STRATEGY ALL",
        "OPTIMIZE TABLE {t} WHERE {} = 'a' STRATEGY ALL",
        "SHOW INDEXING {}",
        "CANCEL INDEXING {}",
    ]
    values = [
        "CREATE INDEX i ON {} USING lucene (id)",
        "CREATE INDEX i ON {t} USING lucene (id OPTIONS({} = 'v'))",
        "CREATE INDEX i ON {t} USING lucene (id OPTIONS(analyzer = {}))",
        "ALTER INDEX mine ON {t} SET OPTIONS(analyzer = {})",
        "DROP INDEX mine ON {} PURGE",
        "OPTIMIZE TABLE {} STRATEGY ALL",
        "OPTIMIZE TABLE {t} WHERE dt = {} STRATEGY FULL",
        "SHOW INDEXES FROM {}",
        "SHOW INDEXING {t} BUILD {}",
    ]
    for text in (each for each in texts if not each.isidentifier()):
        written = [each.format(*[name(text)] * 2, t=messages.name) for each in statements]
        written += [each.format(literal(text), t=messages.name) for each in values]
        for statement in written:
            with pytest.raises(IndexServiceError):
                session.sql(statement)
        condition = f"dt = {literal(text)} OR dt LIKE {literal(text)} ESCAPE '!'"
        with open_table(messages) as opened:
            assert opened.partitions(condition) == ()
    assert state(messages) == before
    assert session.spark.sql("SHOW TABLES").collect() == tables


def test_path_of_hostile_text_is_that_table(session, messages, tmp_path):
    folder = tmp_path / "it's; DROP TABLE `t` -- ${x} {#\\n %41"
    shutil.copytree(messages, folder)
    before = state(messages)
    for table in (literal(str(folder)), f"hudi.{name(str(folder))}"):
        session.sql(f"CREATE INDEX by_id ON {table} USING lucene (id)")
        with open_table(folder) as opened:
            assert [each.name for each in opened.indexes()] == ["by_id"]
        assert session.sql(f"DROP INDEX by_id ON {table}").first().dropped
    assert state(messages) == before
