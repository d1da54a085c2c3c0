"""What it takes to open an entry, and to ask it."""

from hudi_index_parquet import Footer

from hudi_index_service.calibrate.sample import GROUPS, Sample
from hudi_index_service.calibrate.timing import Stopwatch, explained
from hudi_index_service.index.contract import IndexReader
from hudi_index_service.index.manifest import PARQUET_METADATA
from hudi_index_service.index.packed_file import read_member
from hudi_index_service.predicate import negation_normal_form, parse_predicate

_ASKED = (
    "key = 'k000000000007'",
    "key = 'k000000001007'",
    *(f"group = 'group {number}'" for number in range(0, GROUPS, 3)),
    "number < 50000000",
    "number BETWEEN 200000000 AND 500000000",
)


def lookup_costs(sample: Sample, watch: Stopwatch) -> dict[str, float]:
    """`open_ms`, `lookup_ms`, `step_ms`."""
    reader = sample.kind.open(sample.index, sample.columns)
    try:
        asked = {
            text: negation_normal_form(parse_predicate(text, sample.schema, time_zone="UTC"))
            for text in _ASKED
        }
        steps = {text: float(reader.estimate(leaf)) for text, leaf in asked.items()}
        works = {text: lambda leaf=leaf: reader.row_ids(leaf) for text, leaf in asked.items()}
        took = watch.least({"open": lambda: _opened(sample).close(), **works})
    finally:
        reader.close()
    lookup, step = explained([(1.0, steps[text]) for text in asked], [took[text] for text in asked])
    return {"open_ms": took["open"], "lookup_ms": lookup, "step_ms": step}


def _opened(sample: Sample) -> IndexReader:
    """As a query opens it, page locations included."""
    Footer(read_member(sample.index, PARQUET_METADATA))
    return sample.kind.open(sample.index, sample.columns)
