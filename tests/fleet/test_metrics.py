"""What Prometheus reads is what was seen of the tables, and what the service did."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, replace
from datetime import timedelta
from pathlib import Path

import pytest
from prometheus_client.parser import text_string_to_metric_families

from hudi_index_service import __version__, open_table
from hudi_index_service.fleet.builds.messages import Counted
from hudi_index_service.fleet.observation import Observation, Refusal
from hudi_index_service.fleet.signals.metrics import Metrics
from hudi_index_service.fleet.signals.seen import Seen
from hudi_index_service.read.recording import QueryTaken
from tests.fleet.statuses import EXPECTED, NOW, ago, ended, index, policy, status

Series = dict[tuple[str, frozenset[tuple[str, str]]], float]


def read(metrics: Metrics) -> Series:
    """All series as Prometheus' own parser reads them."""
    found: Series = {}
    for family in text_string_to_metric_families(metrics.text().decode()):
        assert family.documentation
        for sample in family.samples:
            key = (sample.name, frozenset(sample.labels.items()))
            assert key not in found, key
            found[key] = sample.value
    return found


def value(series: Series, name: str, **labels: str) -> float | None:
    """The value of one series; None if there is none."""
    return series.get((f"hudi_index_{name}", frozenset(labels.items())))


def tables_in(series: Series) -> set[str]:
    """The tables that any series names."""
    return {dict(labels)["table"] for _, labels in series if "table" in dict(labels)}


@contextmanager
def metrics_of(
    observations: Sequence[Observation] | Callable[[], Sequence[Observation]] = (),
    most: int = 1000,
    problems: Sequence[Refusal] = (),
) -> Iterator[Metrics]:
    """Metrics of some tables whose reasons have been seen twice."""
    seen, tables = Seen(), observations if callable(observations) else lambda: observations
    for second in (0, 1):
        for each in tables():
            seen.observe(replace(each, at=(each.at or NOW) + timedelta(seconds=second)), NOW)
    metrics = Metrics(
        tables, lambda each: seen.shown(each, NOW), most_tables=most, problems=lambda: problems
    )
    try:
        yield metrics
    finally:
        metrics.close()


def test_a_table_is_told_as_it_was_seen() -> None:
    seen = Observation(
        replace(policy("orders"), catalog="glue", database="shop"),
        ago(0),
        status(
            index(100, 60, due=20, late=90, outdated=5, newer=4, damaged=1),
            index(100, 100, name="by_day"),
        ),
        queued=ago(1),
        orphaned_bytes=77,
    )
    of = {"catalog": "glue", "database": "shop", "table": "orders"}

    with metrics_of([seen]) as metrics:
        series = read(metrics)

    assert value(series, "table_up", **of) == 1
    assert value(series, "attention_severity", **of) == 1
    assert value(series, "lag_instants", **of) == 20
    assert value(series, "oldest_due_timestamp_seconds", **of) == ago(90).timestamp()
    assert value(series, "coverage_ratio", index="by_id", **of) == 0.6
    assert value(series, "coverage_ratio", index="by_day", **of) == 1
    states = {"covered": 160, "due": 20, "outdated": 5, "newer": 4, "damaged": 1, "not_due": 10}
    assert {state: value(series, "files", state=state, **of) for state in states} == states
    assert value(series, "bytes", type="btree", **of) == 0  # the status' own sum
    assert value(series, "orphaned_bytes", **of) == 77
    assert value(series, "queue_tables") == 1
    assert value(series, "tables") == 1
    assert value(series, "build_info", version=__version__) == 1


def test_all_tables_have_the_severity_of_their_worst_reason() -> None:
    with metrics_of([each.observation for each in EXPECTED]) as metrics:
        series = read(metrics)

    for each in EXPECTED:
        of = {"catalog": "", "database": "", "table": each.name}
        codes = {1: ("unreachable", "damaged_entries"), 3: ("lag", "low_coverage")}
        severity = value(series, "attention_severity", **of)
        if not each.reasons:
            assert severity == 0
        elif severity in codes:
            assert each.reasons[0][0] in codes[int(severity)]
        seen = each.observation
        up = None if seen.at is None else seen.status is not None and not seen.unreachable_polls
        assert value(series, "table_up", **of) == up


def test_what_was_not_seen_has_no_series() -> None:
    with metrics_of([Observation(policy("a_new_one"))]) as metrics:
        names = {name for name, labels in read(metrics) if ("table", "a_new_one") in labels}

    assert names == {"hudi_index_attention_severity"}


def test_a_table_that_left_has_no_series() -> None:
    tables = [Observation(policy(name), ago(0), status()) for name in "ab"]

    with metrics_of(tables) as metrics:
        assert tables_in(read(metrics)) == {"a", "b"}
        del tables[0]
        assert tables_in(read(metrics)) == {"b"}


def test_only_the_most_needy_tables_have_series_and_the_others_are_counted() -> None:
    with metrics_of([each.observation for each in EXPECTED], most=5) as metrics:
        series = read(metrics)

    assert tables_in(series) == {each.name for each in EXPECTED[:5]}
    assert value(series, "tables") == 40
    assert value(series, "tables_cut") == 35


def test_any_name_of_a_table_can_be_read() -> None:
    names = ['quo"te', "back\\slash", "line\nbreak", "ümlaut", "lone \udc80"]

    with metrics_of([Observation(policy(each)) for each in names]) as metrics:
        found = tables_in(read(metrics))

    assert found == {'quo"te', "back\\slash", "line\\nbreak", "ümlaut", "lone \\udc80"}


def test_one_scrape_asks_once_for_the_tables() -> None:
    asked: list[int] = []
    tables = [
        replace(each.observation, policy=policy(f"{each.name}{number}"))
        for number in range(5)
        for each in EXPECTED
    ]

    def in_memory() -> list[Observation]:
        asked.append(1)
        return tables

    with metrics_of(in_memory) as metrics:
        asked.clear()
        assert len(tables_in(read(metrics))) == 200
    assert asked == [1]


def test_builds_callbacks_and_requests_of_children_are_counted() -> None:
    with metrics_of() as metrics:
        before = read(metrics)
        metrics.build_ended(ended("hung", 5), 70.0)
        metrics.build_ended(ended("hung", 5), 2.0)
        metrics.build_ended(replace(ended("finished", 5), action="clean"), 9.0)
        metrics.callback("accepted")
        metrics.counted(Counted("r", {"read": 3}))
        metrics.counted(Counted("r", {"read": 2, "list": 1}))
        after = read(metrics)

    assert value(before, "builds_total", outcome="hung", trigger="poll") == 0
    assert value(after, "builds_total", outcome="hung", trigger="poll") == 2
    assert value(after, "build_duration_seconds_sum") == 72
    assert value(after, "build_duration_seconds_bucket", le="60.0") == 1
    assert value(after, "callbacks_total", outcome="accepted") == 1
    for operation, number in (("read", 5), ("list", 1), ("delete", 0)):
        was = value(before, "store_requests_total", op=operation)
        now = value(after, "store_requests_total", op=operation)
        assert (now or 0) - (was or 0) == number


def test_queries_of_children_are_counted_too() -> None:
    told = Counted("r", {"read": 4}, [asdict(QueryTaken("scan", "cost", 2.0, 10, 5, 3, 1))])
    with metrics_of() as metrics:
        before = read(metrics)
        metrics.counted(told)
        series = read(metrics)

    assert value(series, "queries_total", path="scan", rule="cost") == 1
    assert value(series, "read_bytes_total", kind="data") == 10
    was = value(before, "store_requests_total", op="read") or 0
    assert value(series, "store_requests_total", op="read") == was + 4


def test_problems_of_the_service_are_counted_by_code_while_they_last() -> None:
    problems = [Refusal(code, "It is wrong.", "Mend it.") for code in ("A", "B", "A")]
    with metrics_of(problems=problems) as metrics:
        before = read(metrics)
        problems.clear()
        after = read(metrics)

    assert [value(before, "problems", code=code) for code in "AB"] == [2, 1]
    assert value(after, "problems", code="A") is None


def test_a_query_is_counted_by_how_it_was_read() -> None:
    with metrics_of() as metrics:
        metrics.query(QueryTaken("index", "coverage", 0.02, 500, 40, 7, 3))
        series = read(metrics)

    assert value(series, "queries_total", path="index", rule="coverage") == 1
    assert value(series, "query_duration_seconds_bucket", path="index", le="0.025") == 1
    assert value(series, "read_bytes_total", kind="data") == 500
    assert value(series, "read_bytes_total", kind="index") == 40
    assert value(series, "cache_hits_total") == 4
    assert value(series, "cache_misses_total") == 3


@pytest.mark.parametrize(("use_index", "path"), [("require", "index"), ("never", "scan")])
def test_queries_of_this_process_are_counted_until_closed(
    indexed_table: Path, use_index: str, path: str
) -> None:
    table = open_table(indexed_table)
    table.build(strategy="all").raise_for_failures()
    scan = table.scan(where="sender = 'User3'", use_index=use_index)

    with metrics_of() as metrics:
        assert scan.to_arrow().num_rows
        series = read(metrics)
    scan.to_arrow()

    counted = {labels: n for (name, labels), n in series.items() if name.endswith("queries_total")}
    assert [(dict(labels)["path"], number) for labels, number in counted.items()] == [(path, 1)]
    assert (value(series, "read_bytes_total", kind="data") or 0) > 0
    entries = [value(series, f"cache_{each}_total") or 0 for each in ("hits", "misses")]
    assert (sum(entries) > 0) == (path == "index")
    after = read(metrics)
    assert {key: after[key] for key in after if "queries" in key[0]} == {
        key: series[key] for key in series if "queries" in key[0]
    }
