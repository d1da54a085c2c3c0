"""Records of one query, and of all queries of a shape. Records fade: what is one half-life old
counts half."""

import math
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

from hudi_index_service.config import HistorySettings

LEAST_SEEN = 2.5
"""The minimum number of queries; results of fewer may be chance or a cold cache."""

_MOST_ERROR = math.log(1000)  # that one query's guess counts

_DOUBT = math.log(4) ** 2
"""The variance of the errors between shapes, in logarithms. The less a shape's errors vary between
its queries, compared to this, the more they count."""

_NOISE = 0.05  # variance that a few queries cannot show


@dataclass(frozen=True, slots=True)
class Observation:
    """One finished query, without its literals.

    Attributes:
        shape: See `query_shape`.
        columns: The columns of its predicate.
        unindexed: Those that no index of a slice could answer.
        used: Those for which an index was used, or excluded files.
        rows: Matching rows as expected, before any correction, and as found; None if not known.
        amounts: Sums of this query alone; see `HistoryShape`.
    """

    shape: str
    columns: frozenset[str]
    unindexed: frozenset[str]
    used: frozenset[str]
    rows: tuple[float, float] | None
    amounts: dict[str, float]


class Sums(dict[str, float]):
    """Named sums; unknown names are 0."""

    def __missing__(self, name: str) -> float:
        return 0.0


@dataclass(slots=True)
class HistoryShape:
    """The record of the queries of one shape on one table.

    Attributes:
        queries: The number of all queries since the history began.
        last: The end time of the last query, in seconds since 1970.
        last_used: The time when a query last used an index; 0 for never.
        columns, unindexed, used: Of the last query; see `Observation`.
        sums: Fading sums: ``queries``, ``by_index`` and ``scanned`` (queries that read a slice this
            way), ``rows``, ``bytes`` and ``index_ms`` (slices by index), ``scan_ms``,
            ``scan_bytes``, ``scan_rows``; and of the errors of expected rows, in logarithms, their
            number, sum and sum of squares: ``rows.n``, ``rows.ln``, ``rows.ln2``.
    """

    shape: str
    queries: int = 0
    last: float = 0.0
    last_used: float = 0.0
    columns: frozenset[str] = frozenset()
    unindexed: frozenset[str] = frozenset()
    used: frozenset[str] = frozenset()
    sums: Sums = field(default_factory=Sums)

    def add(self, query: Observation, now: float, settings: HistorySettings) -> None:
        """Adds a query that ended at a time, in seconds since 1970."""
        days = max(0.0, now - self.last) / 86_400
        keep = 0.5 ** (1 / settings.half_life_queries + days / settings.half_life_days)
        amounts = {"queries": 1.0, **query.amounts}
        if query.rows is not None:
            expected, actual = query.rows
            error = math.log((actual + 1) / (expected + 1))
            error = max(-_MOST_ERROR, min(_MOST_ERROR, error))
            amounts |= {"rows.n": 1.0, "rows.ln": error, "rows.ln2": error * error}
        for name in self.sums:
            self.sums[name] *= keep
        for name, amount in amounts.items():
            self.sums[name] += amount
        self.queries += 1
        self.columns, self.unindexed, self.used = query.columns, query.unindexed, query.used
        self.last = max(self.last, now)
        if query.used:
            self.last_used = max(self.last_used, now)

    def mean(self, name: str, per: str = "queries") -> float:
        """A sum per query, or per query of some kind; 0 without such queries."""
        return self.sums[name] / self.sums[per] if self.sums[per] else 0.0

    @property
    def correction(self) -> float | None:
        """The factor for expected rows; None while too little is known.

        The mean error of the guesses' logarithms is drawn to 0 (no correction) the more, the fewer
        guesses there are and the more they vary. It is the mean of a normal distribution with a
        normal prior around 0 (Gelman et al., Bayesian Data Analysis, 2.5).
        """
        count = self.sums["rows.n"]
        if count < LEAST_SEEN:
            return None
        mean = self.sums["rows.ln"] / count
        variance = max(0.0, self.sums["rows.ln2"] / count - mean * mean) + _NOISE
        return math.exp(mean * count / (count + variance / _DOUBT))

    def to_dict(self) -> dict[str, Any]:
        """As `hudi-index history --output json` prints it: see docs/explain.md."""
        factor = self.correction
        return {
            "shape": self.shape,
            "queries": self.queries,
            "last": datetime.fromtimestamp(self.last, UTC).isoformat(timespec="seconds"),
            "columns": sorted(self.columns),
            "unindexed": sorted(self.unindexed),
            "weight": round(self.sums["queries"], 3),
            "by_index": round(self.sums["by_index"], 3),
            "scanned": round(self.sums["scanned"], 3),
            "rows": round(self.mean("rows"), 3),
            "index_ms": round(self.mean("index_ms", "by_index"), 3),
            "scan_ms": round(self.mean("scan_ms", "scanned"), 3),
            "corrections": {} if factor is None else {"rows": float(f"{factor:.4g}")},
        }
