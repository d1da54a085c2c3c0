"""The Lucene analyzers that text columns can have: those of lucene-analysis-common that need no
settings, by short name or class name."""

_PACKAGE = "org.apache.lucene.analysis"
_CLASSES = (
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
    path.split(".")[1].removesuffix("Analyzer").lower(): f"{_PACKAGE}.{path}" for path in _CLASSES
}
"""Class name by short name, such as ``english``."""

_SHORT_NAMES = {
    **{short: short for short in ANALYZERS},
    **{name: short for short, name in ANALYZERS.items()},
    **{name.rsplit(".", 1)[1]: short for short, name in ANALYZERS.items()},
}


def analyzer_name(text: str) -> str | None:
    """The short name of an analyzer, given as ``english``, ``EnglishAnalyzer`` or
    ``org.apache.lucene.analysis.en.EnglishAnalyzer``; None if there is none."""
    return _SHORT_NAMES.get(text)
