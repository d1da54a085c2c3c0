"""Optional part of the contract for index types that rank texts: they score the rows of full-text
searches, and in the same way rows that no entry holds."""

from contextlib import AbstractContextManager
from typing import Protocol

import numpy as np
import pyarrow as pa
from pyroaring import BitMap

from hudi_index_service.predicate.expression import Match


class RankedRows(Protocol):
    """Some rows of a full-text search that can be scored."""

    def statistics(self) -> np.ndarray:
        """The integers on which scores are based. Those of several `RankedRows` of one search are
        added up to get those of all their rows."""

    def best(self, k: int, statistics: np.ndarray, among: BitMap | None) -> list[tuple[int, float]]:
        """The `k` rows (fewer if fewer match) with the highest scores under the given statistics,
        highest first, each with its score. Only rows in `among`, if given."""


class RankedTexts(Protocol):
    """Collects the texts of rows that no entry holds, in row order, to score them."""

    def add(self, texts: pa.Array) -> None:
        """Adds the texts of the next rows."""

    def ranked(self) -> RankedRows:
        """All added rows, ready to be scored; nothing can be added afterwards."""


class TextRanker(Protocol):
    """Scores rows that no entry holds, as an entry would."""

    def texts(self, match: Match) -> AbstractContextManager[RankedTexts]:
        """An empty collection for the rows' texts. Its results are valid only within the block."""
