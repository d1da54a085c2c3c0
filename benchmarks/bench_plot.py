"""Measured points and the line through them, as a small SVG."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

_WIDTH, _HEIGHT, _MARGIN = 460, 320, 56


@dataclass(frozen=True)
class Line:
    """``seconds = start + per_unit * x``, and how far the worst point lies from it: a fraction of
    the line's value there."""

    start: float
    per_unit: float
    deviation: float

    def at(self, x: float) -> float:
        """Seconds at x."""
        return self.start + self.per_unit * x


def line_through(points: Mapping[int, float]) -> Line:
    """The line with the least sum of squared relative deviations."""
    weighted = [(x, y, 1 / y**2) for x, y in points.items()]
    total = sum(w for _, _, w in weighted)
    mean_x = sum(w * x for x, _, w in weighted) / total
    mean_y = sum(w * y for _, y, w in weighted) / total
    spread = sum(w * (x - mean_x) ** 2 for x, _, w in weighted)
    slope = sum(w * (x - mean_x) * (y - mean_y) for x, y, w in weighted) / spread if spread else 0.0
    line = Line(mean_y - slope * mean_x, slope, 0.0)
    worst = max(abs(y / line.at(x) - 1) for x, y in points.items())
    return Line(line.start, line.per_unit, worst)


def growth_plot(panels: Sequence[tuple[str, Mapping[int, float]]]) -> str:
    """One panel a series: what grows, and its value → seconds."""
    width = _WIDTH * len(panels)
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{_HEIGHT}" '
        f'viewBox="0 0 {width} {_HEIGHT}" font-family="sans-serif" font-size="12">',
        f'<rect width="{width}" height="{_HEIGHT}" fill="white"/>',
    ]
    for number, (label, points) in enumerate(panels):
        parts += [f'<g transform="translate({_WIDTH * number} 0)">', *_panel(label, points), "</g>"]
    return "\n".join([*parts, "</svg>", ""])


def _panel(label: str, points: Mapping[int, float]) -> list[str]:
    line = line_through(points)
    most_x, most_y = max(points), max(*points.values(), line.at(max(points)))

    def place(x: float, y: float) -> tuple[float, float]:
        return (
            round(_MARGIN + x / most_x * (_WIDTH - 2 * _MARGIN), 1),
            round(_HEIGHT - _MARGIN - y / most_y * (_HEIGHT - 2 * _MARGIN), 1),
        )

    left, bottom = place(0, 0)
    right, top = place(most_x, most_y)
    x1, y1 = place(0, max(line.start, 0))
    x2, y2 = place(most_x, line.at(most_x))
    drawn = [
        f'<path d="M{left} {top}V{bottom}H{right}" fill="none" stroke="black"/>',
        f'<line x1="{x1}" y1="{y1}" x2="{x2}" y2="{y2}" stroke="gray" stroke-dasharray="4"/>',
        f'<text x="{_WIDTH / 2}" y="24" text-anchor="middle">seconds against {label}; the worst '
        f"point is {100 * line.deviation:.0f}% off the line</text>",
    ]
    for x, y in sorted(points.items()):
        at_x, at_y = place(x, y)
        drawn += [
            f'<circle cx="{at_x}" cy="{at_y}" r="4" fill="steelblue"/>',
            f'<text x="{at_x}" y="{at_y - 9}" text-anchor="middle">{y:.1f}</text>',
            f'<text x="{at_x}" y="{bottom + 18}" text-anchor="middle">{x:,}</text>',
        ]
    return drawn
