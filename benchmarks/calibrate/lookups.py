"""Measures opening an entry and looking up conditions in it, for each index type."""

from collections.abc import Callable
from contextlib import ExitStack
from functools import partial

from hudi_index_parquet import Footer

from benchmarks.calibrate.sample import GROUPS, KINDS, Sample, SampleIndex
from benchmarks.calibrate.timing import Stopwatch, explained
from hudi_index_service.index.metadata.manifest import PARQUET_METADATA
from hudi_index_service.index.packed_file import read_member
from hudi_index_service.predicate import negation_normal_form, parse_predicate

_PREFIXES = {"lucene": "", "btree": "btree_"}
"""Index type → prefix of its constants' names."""

_LISTS = (10, 100)
_CONDITIONS = (
    "key = 'k000000000007'",
    "key = 'k000000001007'",
    "number < 50000000",
    "number BETWEEN 200000000 AND 500000000",
)
_MANY_ROWS_EACH = tuple(f"group = 'group {number}'" for number in range(0, GROUPS, 3))
"""For Lucene only: it visits the rows of a value one by one. A tree has them as one set, which
gives no cost per row."""


def lookup_costs(sample: Sample, watch: Stopwatch) -> dict[str, float]:
    """Constant → value: `open_ms`, `lookup_ms`, `listed_ms`, `step_ms` of each index type."""
    list_lengths = dict.fromkeys((*_CONDITIONS, *_MANY_ROWS_EACH), 0)
    list_lengths |= {_list(sample.rows, values): values for values in _LISTS}
    leaves = {
        text: negation_normal_form(parse_predicate(text, sample.schema, time_zone="UTC"))
        for text in list_lengths
    }
    conditions = {"lucene": list(leaves), "btree": [e for e in leaves if e not in _MANY_ROWS_EACH]}
    works: dict[tuple[str, str], Callable[[], object]] = {}
    steps: dict[tuple[str, str], float] = {}
    with ExitStack() as stack:
        for kind in KINDS:
            index = sample.indexes[kind]
            reader = index.open()
            stack.callback(reader.close)
            for text in conditions[kind]:
                steps[kind, text] = float(reader.estimate(leaves[text]))
                works[kind, text] = partial(reader.row_ids, leaves[text])
            works[kind, "open"] = partial(_open_and_close, index)
        times = watch.least(works)
    costs: dict[str, float] = {}
    for kind in KINDS:
        counts = [(1.0, list_lengths[text], steps[kind, text]) for text in conditions[kind]]
        fitted_costs = (
            times[kind, "open"],
            *explained(counts, [times[kind, text] for text in conditions[kind]]),
        )
        names = ("open_ms", "lookup_ms", "listed_ms", "step_ms")
        costs |= {
            f"{_PREFIXES[kind]}{name}": ms for name, ms in zip(names, fitted_costs, strict=True)
        }
    return costs


def _list(rows: int, values: int) -> str:
    """A condition with a list of keys that are far apart."""
    keys = (f"'k{number * rows // values:012d}'" for number in range(values))
    return f"key IN ({', '.join(keys)})"


def _open_and_close(index: SampleIndex) -> None:
    """Opens the index as a query does, including page locations."""
    Footer(read_member(index.packed, PARQUET_METADATA))
    index.open().close()
