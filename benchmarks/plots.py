"""The plots of README.md, from committed results: `make plots`.

- docs/images/reads.svg: the queries of benchmarks/results/read.json on files that Hudi wrote by
  default (gzip), in milliseconds on a logarithmic scale.
"""

import json
from collections.abc import Iterator, Mapping, Sequence
from html import escape
from math import log10
from pathlib import Path
from typing import Any

from benchmarks.bench_table import ROOT

IMAGES = ROOT / "docs" / "images"
RESULTS = ROOT / "benchmarks" / "results"

CONTESTANTS = {
    "spark": "Spark",
    "duckdb": "DuckDB",
    "lance": "Lance, on its own copy",
    "ours": "this service",
}

# Readable on a page of either color.
_STYLE = """
  text { fill: #1f2328; font: 13px sans-serif }
  .query { font-weight: bold }
  .grid { stroke: #8c959f; stroke-opacity: .35 }
  .spark { fill: #e25a1c } .duckdb { fill: #b59b00 }
  .lance { fill: #8c6bb1 } .ours { fill: #0a7d5c }
  @media (prefers-color-scheme: dark) {
    text { fill: #e6edf3 }
    .ours { fill: #2fbf8f } .duckdb { fill: #d9c13b } .lance { fill: #b197d6 }
  }
"""
# Narrow, so that its text can be read on a phone.
_WIDTH, _LEFT, _RIGHT, _TOP = 480, 22, 40, 44
_LABEL, _BAR, _GAP = 18, 13, 10
_LEAST, _MOST = 1.0, 10_000.0  # milliseconds


def bars(title: str, groups: Sequence[tuple[str, Mapping[str, float]]]) -> str:
    """Groups of horizontal bars on a logarithmic scale.

    Args:
        title: What is shown, for readers who do not see the picture.
        groups: For each group its label, and contestant → milliseconds.
    """
    height = _TOP + sum(_LABEL + len(values) * _BAR + _GAP for _, values in groups) + 24
    return "\n".join(
        [
            f'<svg xmlns="http://www.w3.org/2000/svg" width="{_WIDTH}" height="{height}" '
            f'viewBox="0 0 {_WIDTH} {height}" role="img" aria-label="{escape(title)}">',
            f"<style>{_STYLE}</style>",
            *_legend(),
            *_grid(height),
            *_groups(groups),
            "</svg>",
            "",
        ]
    )


def _x(ms: float) -> float:
    share = log10(max(ms, _LEAST) / _LEAST) / log10(_MOST / _LEAST)
    return round(_LEFT + share * (_WIDTH - _LEFT - _RIGHT), 1)


def _legend() -> Iterator[str]:
    at = _LEFT
    for name, label in CONTESTANTS.items():
        yield f'<rect class="{name}" x="{at}" y="8" width="12" height="12"/>'
        yield f'<text x="{at + 17}" y="19">{label}</text>'
        at += 40 + round(6.3 * len(label))


def _grid(height: int) -> Iterator[str]:
    for power in range(round(log10(_LEAST)), round(log10(_MOST)) + 1):
        x = _x(10**power)
        yield f'<path class="grid" d="M{x} {_TOP - 10}V{height - 20}"/>'
        label = f"{10**power:,} ms" if power < 3 else f"{10 ** (power - 3)} s"
        yield f'<text x="{x}" y="{height - 5}" text-anchor="middle">{label}</text>'


def _groups(groups: Sequence[tuple[str, Mapping[str, float]]]) -> Iterator[str]:
    y = _TOP
    for label, values in groups:
        yield f'<text class="query" x="{_LEFT}" y="{y + _LABEL - 6}">{label}</text>'
        y += _LABEL
        for name, ms in values.items():
            end = _x(ms)
            width = round(end - _LEFT, 1)
            yield f'<rect class="{name}" x="{_LEFT}" y="{y}" width="{width}" height="{_BAR - 2}"/>'
            yield f'<text x="{end + 5}" y="{y + _BAR - 3}">{_milliseconds(ms)}</text>'
            y += _BAR
        y += _GAP


def _milliseconds(ms: float) -> str:
    return f"{ms:,.0f}" if ms >= 10 else f"{ms:.1f}"


def reads(results: Mapping[str, Any]) -> str:
    """The plot of read.json."""
    groups = [
        (
            escape(each["query"]),
            {name: each["ms"][name] for name in CONTESTANTS if name in each["ms"]},
        )
        for each in results["queries"]
        if each["codec"] == "gzip"
    ]
    title = f"Milliseconds of queries on {results['rows']:,} rows, on a logarithmic scale"
    return bars(title, groups)


def plots() -> dict[Path, str]:
    """Path → content of each plot."""
    return {IMAGES / "reads.svg": reads(json.loads((RESULTS / "read.json").read_text()))}


def main() -> None:
    """Writes the plots."""
    for path, content in plots().items():
        path.write_text(content)
        print(path.relative_to(ROOT))


if __name__ == "__main__":
    main()
