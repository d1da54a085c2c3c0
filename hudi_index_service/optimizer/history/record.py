"""What one query had, and what is remembered of all queries of its shape."""

from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any, Literal, TypeAlias

from hudi_index_service.optimizer.history.sums import Sums

Amount: TypeAlias = Literal["rows", "pages", "index_ms", "scan_ms"]

AMOUNTS: tuple[Amount, ...] = ("rows", "pages", "index_ms", "scan_ms")
"""What the optimizer guesses, and a finished query tells: rows that match, pages that hold them,
milliseconds by index and by scan."""

LEAST_SEEN = 2.5
"""Queries: what fewer had is chance, or a cold cache."""


@dataclass(frozen=True, slots=True)
class Correction:
    """By what the optimizer's guesses are to be multiplied for queries of a shape.

    Attributes:
        rows: Of those that match; 1 where too little is known.
        pages: Of those that hold them; None where too few queries of the shape were read by them.
        queries: How many queries this rests on, older ones in part.
        in_vain: What asking the index has cost, and gained, where slices were scanned after all;
            None where too few queries were read so.
    """

    rows: float
    pages: float | None
    queries: float
    in_vain: "InVain | None" = None


@dataclass(frozen=True, slots=True)
class InVain:
    """What slices took that were to be read by index, on an average.

    A look-up and the scan that follows it are timed in one query, one after the other: a busy
    machine delays both, so that they compare better than times of different queries.

    Attributes:
        asked_ms: As they were read: asked, then read by rows or, where that was dearer, scanned.
        scan_ms: What they would have taken unasked: what the scans took, and of those that were
            read by rows what was expected of a scan.
        queries: How many queries had slices that were scanned after all, older ones in part.
    """

    asked_ms: float
    scan_ms: float
    queries: float


@dataclass(frozen=True, slots=True)
class Observation:
    """One finished query, without its literals.

    Attributes:
        shape: See `query_shape`.
        columns: Those of its predicate.
        unindexed: Those of them that no index of a slice could answer.
        used: Those of them by which an index was asked, or left files out.
        guesses: Of each amount that is known: what was expected, and what there was.
        amounts: Further sums, of this query alone: see `HistoryShape`.
    """

    shape: str
    columns: frozenset[str]
    unindexed: frozenset[str]
    used: frozenset[str]
    guesses: dict[Amount, tuple[float, float]]
    amounts: dict[str, float]


@dataclass(slots=True)
class HistoryShape:
    """What is remembered of the queries of one shape on one table.

    Attributes:
        queries: All of them, since the history began.
        last: When the last one ended, in seconds since 1970.
        last_used: When one last used an index; 0 for never.
        columns, unindexed, used: Of the last query: see `Observation`.
        sums: Fading: ``queries``, ``by_index`` and ``scanned`` (queries that read some slice so),
            ``rows``, ``candidates``, ``pages``, ``bytes``, ``index_ms`` (whole slices by index),
            ``lookup_ms`` (the index's part of that), ``scan_ms``, ``scan_bytes``, ``scan_rows``;
            ``in_vain`` (queries that scanned slices which they had asked the index about), and of
            all slices that were asked ``asked`` (their number), ``asked_ms``, ``unasked_ms``; and
            how guesses were wrong.
    """

    shape: str
    queries: int = 0
    last: float = 0.0
    last_used: float = 0.0
    columns: frozenset[str] = frozenset()
    unindexed: frozenset[str] = frozenset()
    used: frozenset[str] = frozenset()
    sums: Sums = field(default_factory=Sums)

    def add(self, seen: Observation, now: float, keep: float) -> None:
        """Adds a query; of what was known, `keep` stays."""
        self.sums.fade(keep)
        self.sums.add("queries", 1.0)
        self.sums.add_all(seen.amounts)
        for amount, (expected, actual) in seen.guesses.items():
            self.sums.add_ratio(amount, expected=expected, actual=actual)
        self.queries += 1
        self.last = now
        self.last_used = now if seen.used else self.last_used
        self.columns, self.unindexed, self.used = seen.columns, seen.unindexed, seen.used

    def add_later(self, later: "HistoryShape", keep: float) -> None:
        """Adds queries that came after those that are known, of which `keep` stays."""
        self.sums.fade(keep)
        self.sums.add_all(later.sums.values)
        self.queries += later.queries
        self.last_used = max(self.last_used, later.last_used)
        if later.last >= self.last:
            self.last = later.last
            self.columns, self.unindexed, self.used = later.columns, later.unindexed, later.used

    def mean(self, name: str, per: str = "queries") -> float:
        """A sum a query, or a query of some kind; 0 where there was none."""
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
            "corrections": self._factors("rows", "pages"),
            "times_as_long": self._factors("index_ms", "scan_ms"),
        }

    def _factors(self, *names: Amount) -> dict[str, float]:
        seen = (name for name in names if self.sums.seen(name) >= LEAST_SEEN)
        return {name: float(f"{self.sums.factor(name):.4g}") for name in seen}

    def correction(self) -> Correction | None:
        """By what guesses are to be corrected; None while too little is known."""
        sums = self.sums
        if sums.seen("rows") < LEAST_SEEN:
            return None
        pages = sums.factor("pages") if sums.seen("pages") >= LEAST_SEEN else None
        in_vain = None
        if sums["in_vain"] >= LEAST_SEEN:
            asked = sums["asked"]
            in_vain = InVain(sums["asked_ms"] / asked, sums["unasked_ms"] / asked, sums["in_vain"])
        return Correction(sums.factor("rows"), pages, sums["queries"], in_vain)
