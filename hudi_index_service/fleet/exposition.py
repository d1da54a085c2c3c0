"""Prometheus' text form, byte for byte as prometheus-client writes it. That library checks and
escapes each label of each series at every scrape, which takes most of a scrape of many tables; here
the labels of a series are escaped once."""

from collections.abc import Iterable, Iterator
from functools import lru_cache

from prometheus_client.metrics_core import Metric
from prometheus_client.samples import Sample
from prometheus_client.utils import floatToGoString

_MOST_SERIES = 2**15
"""Whose labels are kept: those of a thousand tables with several indexes."""

_SUFFIXES = {"counter": "_total", "info": "_info"}


def text_of(metrics: Iterable[Metric]) -> bytes:
    """Counters, gauges, histograms and infos as text. Names need no escaping."""
    return "".join(line for each in metrics for line in _lines(each)).encode()


def _lines(metric: Metric) -> Iterator[str]:
    name = metric.name + _SUFFIXES.get(metric.type, "")
    kind = "gauge" if metric.type == "info" else metric.type
    yield f"# HELP {name} {escaped(metric.documentation)}\n# TYPE {name} {kind}\n"
    yield from map(_line, metric.samples)


def _line(sample: Sample) -> str:
    labels = _labels(tuple(sample.labels.items()))
    return f"{sample.name}{labels} {floatToGoString(sample.value)}\n"  # type: ignore[no-untyped-call]


@lru_cache(_MOST_SERIES)
def _labels(labels: tuple[tuple[str, str], ...]) -> str:
    if not labels:
        return ""
    values = ((name, escaped(value).replace('"', '\\"')) for name, value in sorted(labels))
    return "{" + ",".join(f'{name}="{value}"' for name, value in values) + "}"


def escaped(text: str) -> str:
    """A text without the characters that end a line; quotes are left to the labels."""
    return text.replace("\\", r"\\").replace("\n", r"\n")
