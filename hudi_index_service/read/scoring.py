"""Scores of single texts, as a ranked search of the whole snapshot gives them."""

from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from hudi_index_service.index.scores import TextRanker
from hudi_index_service.predicate.expression import Match


@dataclass(frozen=True, slots=True)
class Scoring:
    """Scores texts by statistics of all texts of a snapshot. It can be sent to other processes.

    Attributes:
        match: What is searched for: any or all of some words.
        statistics: Of all rows of the snapshot; see `RankedRows.statistics`.
    """

    match: Match
    ranker: TextRanker
    statistics: np.ndarray

    def scores(self, texts: pa.Array) -> pa.FloatArray:
        """BM25 of each text, 0 where it does not match, null where it is NULL.

        Raises:
            NativeModuleMissing: what the index type runs on is not installed.
        """
        found = np.zeros(len(texts), np.float32)
        if len(texts):
            with self.ranker.texts(self.match) as ranked:
                ranked.add(texts)
                best = ranked.ranked().best(len(texts), self.statistics, None)
            for row, score in best:
                found[row] = score
        return pa.array(found, mask=np.asarray(texts.is_null()))
