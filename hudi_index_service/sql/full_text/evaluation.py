"""Functions for Spark's Python workers, which evaluate calls that no index has answered."""

from dataclasses import dataclass
from typing import Any, Protocol

import pyarrow as pa

from hudi_index_service.predicate.expression import Match
from hudi_index_service.read.ranked.scoring import Scoring


class OfTexts(Protocol):
    """Computes a value for each text, null for NULL."""

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
    """Scores of texts."""

    scoring: Scoring

    def values(self, texts: pa.Array) -> pa.Array:
        """0 for a text that does not match."""
        return self.scoring.scores(texts)


@dataclass(frozen=True, slots=True)
class OnSeries:
    """An `OfTexts` on pandas series: the body of a vectorized Spark function."""

    of: OfTexts

    def __call__(self, texts: Any) -> Any:
        return self.of.values(pa.Array.from_pandas(texts, type=pa.string())).to_pandas()
