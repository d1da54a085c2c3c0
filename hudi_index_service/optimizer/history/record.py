"""Records of one query, and of all queries of a shape."""

from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

from hudi_index_service.optimizer.history.sums import Sums

LEAST_SEEN = 2.5
"""The minimum number of queries; results of fewer may be chance or a cold cache."""


@dataclass(frozen=True, slots=True)
class Correction:
    """The correction of the optimizer's estimate for queries of a shape.

    Attributes:
        rows: The factor for matching rows.
        queries: The number of queries behind it, older ones in part.
    """

    rows: float
    queries: float


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


@dataclass(slots=True)
class HistoryShape:
    """The record of the queries of one shape on one table.

    Attributes:
        queries: The number of all queries since the history began.
        last: The end time of the last query, in seconds since 1970.
        last_used: The time when a query last used an index; 0 for never.
        columns, unindexed, used: Of the last query; see `Observation`.
        sums: Decaying sums: ``queries``, ``by_index`` and ``scanned`` (queries that read a slice
            this way), ``rows``, ``bytes`` and ``index_ms`` (slices by index), ``scan_ms``,
            ``scan_bytes``, ``scan_rows``; and the errors of expected rows.
    """

    shape: str
    queries: int = 0
    last: float = 0.0
    last_used: float = 0.0
    columns: frozenset[str] = frozenset()
    unindexed: frozenset[str] = frozenset()
    used: frozenset[str] = frozenset()
    sums: Sums = field(default_factory=Sums)

    def add(self, observation: Observation, now: float, keep: float) -> None:
        """Adds a query, and keeps the share `keep` of the sums so far."""
        self.sums.fade(keep)
        self.sums.add("queries", 1.0)
        self.sums.add_all(observation.amounts)
        if observation.rows is not None:
            expected, actual = observation.rows
            self.sums.add_ratio("rows", expected=expected, actual=actual)
        self.queries += 1
        self.last = now
        self.last_used = now if observation.used else self.last_used
        self.columns, self.unindexed, self.used = (
            observation.columns,
            observation.unindexed,
            observation.used,
        )

    def add_later(self, later: "HistoryShape", keep: float) -> None:
        """Adds later queries, and keeps the share `keep` of the sums so far."""
        self.sums.fade(keep)
        self.sums.add_all(later.sums.values)
        self.queries += later.queries
        self.last_used = max(self.last_used, later.last_used)
        if later.last >= self.last:
            self.last = later.last
            self.columns, self.unindexed, self.used = later.columns, later.unindexed, later.used

    def mean(self, name: str, per: str = "queries") -> float:
        """A sum per query, or per query of some kind; 0 without such queries."""
        return self.sums[name] / self.sums[per] if self.sums[per] else 0.0

    def to_dict(self) -> dict[str, Any]:
        """As `hudi-index history --output json` prints it: see docs/explain.md."""
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
            "corrections": self._corrections(),
        }

    def _corrections(self) -> dict[str, float]:
        correction = self.correction()
        return {} if correction is None else {"rows": float(f"{correction.rows:.4g}")}

    def correction(self) -> Correction | None:
        """The correction of estimates; None while too little is known."""
        if self.sums.seen("rows") < LEAST_SEEN:
            return None
        return Correction(self.sums.factor("rows"), self.sums["queries"])
