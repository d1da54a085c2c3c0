"""Determines the Lucene fields of a column from its Arrow type and options; lists the analyzers.

Field names inside the index: ``k.<column>`` keyword, ``t.<analyzer>.<column>`` analyzed text,
``n.<column>`` number, ``w.<column>`` wide number. ``z.<column>`` has the term "1" where the column
is NULL, and ``e.<column>`` where an array has a NULL element. An array has the fields of its
elements, with one value per element.
"""

from collections.abc import Mapping, Sequence

import pyarrow as pa

from hudi_index_service.errors import IndexDefinitionInvalid
from hudi_index_service.index.stored_column import (
    element_type,
    is_number,
    is_wide_number,
    not_indexable,
)
from hudi_index_service.predicate.comparison import is_binary, is_string
from hudi_index_service.wording import did_you_mean

KEYWORD = "keyword"
NUMBER = "number"
WIDE_NUMBER = "wide_number"
TEXT_PREFIX = "text:"
RANKED_PREFIX = "ranked:"
NULLS = "nulls"
NULL_ELEMENTS = "null_elements"

_LETTERS = {KEYWORD: "k", NUMBER: "n", WIDE_NUMBER: "w", NULLS: "z", NULL_ELEMENTS: "e"}

_OPTIONS = ("analyzer", "keyword", "ranked")
_BOOLEANS = {"true": True, "false": False}


def required_fields(column: str, type: pa.DataType, options: Mapping[str, str]) -> tuple[str, ...]:
    """The fields that a column needs, such as ``("keyword", "text:standard")``.

    Options, for string columns only:

    - ``analyzer`` adds an analyzed field.
    - ``keyword`` (default ``true``) may be ``false`` if there is an analyzer. The whole values are
      then not indexed, and only full-text search and IS NULL are answered.
    - ``ranked`` (default ``false``) may be ``true`` if there is an analyzer. The index then holds
      the number of words of each row, which scores need.

    Raises:
        ColumnNotIndexable: a Lucene index cannot hold the type.
        IndexDefinitionInvalid: an option or its value is unknown.
    """
    unknown = sorted(set(options) - set(_OPTIONS))
    if unknown:
        raise IndexDefinitionInvalid(
            f"Column {column}: a Lucene index has no column option {unknown[0]!r}.",
            remedy=f"{did_you_mean(unknown[0], _OPTIONS)}The column options are "
            f"{', '.join(_OPTIONS)}.",
        )
    if is_string(type):
        return _text_fields(column, options)
    if options:
        raise IndexDefinitionInvalid(
            f"Column {column} has type {type}: only string columns can be analyzed.",
            remedy=f"Remove the option {min(options)}.",
        )
    element = element_type(type)
    if is_string(element) or is_binary(element):
        return (KEYWORD,)
    if is_number(element):
        return (NUMBER,)
    if is_wide_number(element):
        return (WIDE_NUMBER,)
    raise not_indexable(column, type, "a Lucene index")


def _text_fields(column: str, options: Mapping[str, str]) -> tuple[str, ...]:
    keyword = _boolean(column, options, "keyword", default="true")
    ranked = _boolean(column, options, "ranked", default="false")
    if "analyzer" not in options:
        if ranked:
            raise IndexDefinitionInvalid(
                f"Column {column}: without an analyzer there are no words to rank by.",
                remedy="Add an analyzer, or leave ranked out.",
            )
        if not keyword:
            raise IndexDefinitionInvalid(
                f"Column {column}: with keyword=false and no analyzer, nothing would be indexed.",
                remedy="Add an analyzer, or leave keyword out.",
            )
        return (KEYWORD,)
    analyzer = _SHORT_NAMES.get(options["analyzer"])
    if analyzer is None:
        raise IndexDefinitionInvalid(
            f"Column {column}: there is no analyzer {options['analyzer']!r}.",
            remedy=f"{did_you_mean(options['analyzer'], ANALYZERS)}The analyzers are "
            f"{', '.join(sorted(ANALYZERS))}.",
        )
    fields = [KEYWORD] * keyword + [TEXT_PREFIX + analyzer] + [RANKED_PREFIX + analyzer] * ranked
    return tuple(fields)


def _boolean(column: str, options: Mapping[str, str], name: str, *, default: str) -> bool:
    value = _BOOLEANS.get(options.get(name, default).lower())
    if value is None:
        other = "false" if default == "true" else "true"
        raise IndexDefinitionInvalid(
            f"Column {column}: {name} is {options[name]!r}.",
            remedy=f"Write {default} (the default) or {other}.",
        )
    return value


def text_analyzer(fields: Sequence[str]) -> str | None:
    """The analyzer of a column's text field; None if it has no text field."""
    analyzers = (f.removeprefix(TEXT_PREFIX) for f in fields if f.startswith(TEXT_PREFIX))
    return next(analyzers, None)


def lucene_field(field: str, column: str) -> str:
    """Lucene's name for a column's field, such as ``"keyword"`` or ``"text:standard"``, or for what
    marks its NULLs or NULL elements."""
    if field.startswith(TEXT_PREFIX):
        return f"t.{field.removeprefix(TEXT_PREFIX)}.{column}"
    return f"{_LETTERS[field]}.{column}"


_ANALYZER_PACKAGE = "org.apache.lucene.analysis"
_ANALYZER_CLASSES = (
    "ar.ArabicAnalyzer",
    "bg.BulgarianAnalyzer",
    "bn.BengaliAnalyzer",
    "br.BrazilianAnalyzer",
    "ca.CatalanAnalyzer",
    "cjk.CJKAnalyzer",
    "ckb.SoraniAnalyzer",
    "classic.ClassicAnalyzer",
    "core.SimpleAnalyzer",
    "core.UnicodeWhitespaceAnalyzer",
    "core.WhitespaceAnalyzer",
    "cz.CzechAnalyzer",
    "da.DanishAnalyzer",
    "de.GermanAnalyzer",
    "el.GreekAnalyzer",
    "email.UAX29URLEmailAnalyzer",
    "en.EnglishAnalyzer",
    "es.SpanishAnalyzer",
    "et.EstonianAnalyzer",
    "eu.BasqueAnalyzer",
    "fa.PersianAnalyzer",
    "fi.FinnishAnalyzer",
    "fr.FrenchAnalyzer",
    "ga.IrishAnalyzer",
    "gl.GalicianAnalyzer",
    "hi.HindiAnalyzer",
    "hu.HungarianAnalyzer",
    "hy.ArmenianAnalyzer",
    "id.IndonesianAnalyzer",
    "it.ItalianAnalyzer",
    "lt.LithuanianAnalyzer",
    "lv.LatvianAnalyzer",
    "ne.NepaliAnalyzer",
    "nl.DutchAnalyzer",
    "no.NorwegianAnalyzer",
    "pt.PortugueseAnalyzer",
    "ro.RomanianAnalyzer",
    "ru.RussianAnalyzer",
    "sr.SerbianAnalyzer",
    "standard.StandardAnalyzer",
    "sv.SwedishAnalyzer",
    "ta.TamilAnalyzer",
    "te.TeluguAnalyzer",
    "th.ThaiAnalyzer",
    "tr.TurkishAnalyzer",
)

ANALYZERS = {
    path.split(".")[1].removesuffix("Analyzer").lower(): f"{_ANALYZER_PACKAGE}.{path}"
    for path in _ANALYZER_CLASSES
}
"""The analyzers that text columns can have: those of lucene-analysis-common that need no settings.
Class name by short name, such as ``english``."""

_SHORT_NAMES = {
    **{short: short for short in ANALYZERS},
    **{name: short for short, name in ANALYZERS.items()},
    **{name.rsplit(".", 1)[1]: short for short, name in ANALYZERS.items()},
}
"""The short names of analyzers, given as ``english``, ``EnglishAnalyzer`` or
``org.apache.lucene.analysis.en.EnglishAnalyzer``."""
