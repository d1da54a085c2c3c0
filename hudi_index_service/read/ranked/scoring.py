"""Scores single texts like a ranked search of the whole snapshot."""

from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from hudi_index_service.arrow import as_truths, numbers_array
from hudi_index_service.index.contract import TextRanker
from hudi_index_service.predicate.expression import Match


@dataclass(frozen=True, slots=True)
class Scoring:
    """Scores texts by statistics of all texts of a snapshot. It can be sent to other processes.

    Attributes:
        match: The search: any or all of some words.
        statistics: The statistics of all rows of the snapshot; see `RankedRows.statistics`.
    """

    match: Match
    ranker: TextRanker
    statistics: np.ndarray

    def scores(self, texts: pa.Array) -> pa.FloatArray:
        """The BM25 score of each text; 0 if it does not match, null if it is NULL.

        Raises:
            NativeModuleMissing: the index type's native module is not installed.
        """
        scores = np.zeros(len(texts), np.float32)
        if len(texts):
            with self.ranker.texts(self.match) as analyzed_texts:
                analyzed_texts.add(texts)
                best = analyzed_texts.ranked().best(len(texts), self.statistics, None)
            for row, score in best:
                scores[row] = score
        return numbers_array(scores, as_truths(texts.is_null()))
