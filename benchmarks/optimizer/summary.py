"""Summaries of the measured queries."""

import statistics
from collections import defaultdict
from typing import Any

from benchmarks.bench_targets import Target, at_least, at_most

ALLOWED, NEVER_MORE, WITHIN_ALLOWED = 1.2, 2.0, 0.95
ALLOWED_DECISION_MS = {"1": 1.0, "20": 5.0, "100": 5.0, "tpch": 5.0}

Row = dict[str, Any]


def percentile(values: list[float], part: float) -> float:
    """The value that this part of the values does not exceed."""
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(part * len(ordered)))]


def summary(rows: list[Row]) -> dict[str, Any]:
    """By number of base files; TPC-H's tables together."""
    groups: dict[str, list[Row]] = defaultdict(list)
    for row in rows:
        groups[row["group"]].append(row)
    return {group: _of(group, of_group) for group, of_group in groups.items()}


def _of(group: str, rows: list[Row]) -> dict[str, Any]:
    ratios = [row["ratio"] for row in rows]
    decisions = [row["decide_ms"] for row in rows]
    good = sum(ratio <= ALLOWED for ratio in ratios)
    allowed_ms = ALLOWED_DECISION_MS[group]
    dear = sum(
        row["ratio"] > ALLOWED and row["ms"]["auto"] - row["ms"][row["better"]] > allowed_ms
        for row in rows
    )
    result = {
        "queries": len(rows),
        "within_1_2_times": good,
        "share_within_1_2_times": round(good / len(rows), 3),
        "or_within_a_decision": len(rows) - dear,
        "worst_ratio": max(ratios),
        "cpu_share_within_1_2_times": round(
            sum(row["cpu_ratio"] <= ALLOWED for row in rows) / len(rows), 3
        ),
        "reached": good >= WITHIN_ALLOWED * len(rows) and max(ratios) <= NEVER_MORE,
        "total_ms": {
            "auto": round(sum(row["ms"]["auto"] for row in rows)),
            "better": round(sum(row["ms"][row["better"]] for row in rows)),
            "scan": round(sum(row["ms"]["scan"] for row in rows)),
            "index": round(sum(row["ms"].get("index", row["ms"]["scan"]) for row in rows)),
        },
        "plan_ms": spread([row["plan_ms"] for row in rows]),
        "cover_ms": spread([row["cover_ms"] for row in rows]),
        "decide_ms": spread(decisions),
        "decided_in_time": percentile(decisions, 0.95) <= allowed_ms,
    }
    stated = [row for row in rows if "stated" in row]
    result["bounds_stated"] = len(stated)
    if stated:
        result["bounds_hold"] = sum(row["within"] for row in stated)
        result["q_error"] = spread([row["q_error"] for row in stated])
    return result


def targets(groups: dict[str, Row]) -> list[Target]:
    """Nearly all plans close to the better one, none far from it, each decided in time."""
    every = []
    for group, of_group in groups.items():
        name = "TPC-H" if group == "tpch" else f"{group} files"
        good, queries = of_group["within_1_2_times"], of_group["queries"]
        bound = round(WITHIN_ALLOWED * queries)
        every += [
            at_least(f"{name}: of {queries} queries within {ALLOWED} of the better", bound, good),
            at_most(f"{name}: the worst ratio", NEVER_MORE, of_group["worst_ratio"]),
            at_most(
                f"{name}: ms of a decision, 95 %",
                ALLOWED_DECISION_MS[group],
                of_group["decide_ms"]["p95"],
            ),
        ]
    return every


def spread(values: list[float]) -> dict[str, float]:
    """The median, the 95th percentile, and the greatest value."""
    return {
        "median": round(statistics.median(values), 3),
        "p95": round(percentile(values, 0.95), 3),
        "most": round(max(values), 3),
    }


def worst(rows: list[Row], count: int = 20) -> str:
    """The queries whose plan was worst, as a table."""
    lines = [
        "ratio (cpu)    auto   index    scan  table, query, rows, chosen; better; why; columns; "
        "where"
    ]
    for row in sorted(rows, key=lambda row: -row["ratio"])[:count]:
        ms = {"index": float("nan"), **row["ms"]}
        lines.append(
            f"{row['ratio']:5.2f} {row['cpu_ratio']:5.2f} {ms['auto']:7.1f} {ms['index']:7.1f} "
            f"{ms['scan']:7.1f}  {row['table']:<12} #{row['number']:<3} {row['rows']:>8}  "
            f"{row['chosen']}; {row['better']}; {row['why'] or '-'}; {row['asked']}; "
            f"{row['where'][:160]}"
        )
    return "\n".join(lines)
