"""What Spark's Python workers run for a call that no index has decided: the index's analyser."""

from dataclasses import dataclass
from typing import Any, Protocol

import pyarrow as pa

from hudi_index_service.predicate.expression import Match
from hudi_index_service.read.scoring import Scoring


class OfTexts(Protocol):
    """Gives a value for each text, null where the text is NULL."""

    def values(self, texts: pa.Array) -> pa.Array:
        """The values, in the order of the texts."""


@dataclass(frozen=True, slots=True)
class Matching:
    """Whether texts match."""

    match: Match

    def values(self, texts: pa.Array) -> pa.Array:
        """TRUE or FALSE."""
        return self.match.words.matcher.matches(self.match, texts)


@dataclass(frozen=True, slots=True)
class Scores:
    """How well texts fit."""

    scoring: Scoring

    def values(self, texts: pa.Array) -> pa.Array:
        """0 for a text that does not match."""
        return self.scoring.scores(texts)


@dataclass(frozen=True, slots=True)
class OnSeries:
    """The same on pandas' series: the body of a vectorised function of Spark's."""

    of: OfTexts

    def __call__(self, texts: Any) -> Any:
        return self.of.values(pa.Array.from_pandas(texts, type=pa.string())).to_pandas()
