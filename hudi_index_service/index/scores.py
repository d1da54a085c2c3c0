"""What an index type that ranks texts has besides the contract: rows of full-text searches, scored,
and rows that no entry holds, scored alike."""

from contextlib import AbstractContextManager
from typing import Protocol

import numpy as np
import pyarrow as pa
from pyroaring import BitMap

from hudi_index_service.predicate.expression import Match


class RankedRows(Protocol):
    """Some rows of a full-text search that can be scored."""

    def statistics(self) -> np.ndarray:
        """What scores rest on, as integers: those of several `RankedRows` of one search are added
        up to those of all their rows."""

    def best(self, k: int, statistics: np.ndarray, among: BitMap | None) -> list[tuple[int, float]]:
        """The `k` rows (fewer if fewer match) with the highest scores, the highest first, each with
        its score by the given statistics; of `among` alone, if given."""


class RankedTexts(Protocol):
    """Takes the texts of rows that no entry holds, in row order, to score them."""

    def add(self, texts: pa.Array) -> None:
        """The next rows' texts."""

    def ranked(self) -> RankedRows:
        """All rows added; nothing can be added afterwards."""


class TextRanker(Protocol):
    """Scores rows that no entry holds, as an entry would."""

    def texts(self, match: Match) -> AbstractContextManager[RankedTexts]:
        """To be filled with the rows' texts; what it gives serves for the length of the block."""
