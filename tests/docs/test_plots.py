"""The plots and numbers of the README are those of the committed results, which state their targets
and whether they were reached."""

import json
from pathlib import Path
from statistics import median
from typing import Any
from xml.etree import ElementTree

import pytest

from benchmarks.bench_targets import at_least, at_most
from benchmarks.plots import IMAGES, RESULTS, bars, plots
from tests.docs.markdown import ROOT


@pytest.mark.parametrize("path", plots(), ids=lambda path: path.name)
def test_plots_show_the_results(path: Path) -> None:
    assert path.read_text() == plots()[path], "run: make plots"


@pytest.mark.parametrize("path", sorted(IMAGES.glob("*.svg")), ids=lambda path: path.name)
def test_pictures_need_nothing_else_and_have_a_description(path: Path) -> None:
    root = ElementTree.parse(path).getroot()

    assert root.get("aria-label")
    assert all("href" not in name for each in root.iter() for name in each.attrib)


def test_ten_times_as_long_is_a_bar_of_the_same_step() -> None:
    picture = bars("", [("q", {"spark": 1000.0, "duckdb": 100.0, "ours": 10.0})])

    root = ElementTree.fromstring(picture)
    widths = [
        float(each.attrib["width"])
        for each in root.iter("{http://www.w3.org/2000/svg}rect")
        if float(each.attrib["y"]) > 40
    ]
    assert widths[0] - widths[1] == pytest.approx(widths[1] - widths[2], abs=0.2)


def result(name: str) -> Any:
    return json.loads((RESULTS / f"{name}.json").read_text())


def test_costs_in_the_readme_are_measured() -> None:
    text = (ROOT / "README.md").read_text()
    build, sql = result("build"), result("sql")
    megabytes = [build[each]["index_bytes"] / 1e6 for each in "AB"]
    base_file = build["base_file_bytes"] / 1e6
    over = [each["plan_ms"]["over"] for each in sql["queries"] if not each["uses_index_of"]]
    assert f"{build['rows']:,} rows" in text
    assert f"as words: {median(build['seconds']['A']):.1f} s" in text
    share = f"{build['A']['build_over_clustering']:.0%}".replace("%", " %")
    assert f"{share} of the clustering's time" in text
    assert f"{megabytes[0]:.0f} MB for {base_file:.0f} MB of Parquet" in text
    assert f"{megabytes[0] / base_file:.0%}".replace("%", " %") in text
    assert f"distinct keys {megabytes[1] / base_file:.0%}".replace("%", " %") in text
    slower = max(0.0, result("read")["half"]["gzip"]["over_scan"] - 1)
    assert f"{slower:.0%} slower than a scan".replace("%", " %") in text
    assert f"{min(over)} to {max(over)} ms more" in text


def test_readme_says_how_often_lance_is_faster() -> None:
    text = (ROOT / "README.md").read_text()
    compared = [each["ms"] for each in result("read")["queries"] if "lance" in each["ms"]]
    ours = sum(ms["ours"] <= ms["lance"] for ms in compared)
    assert f"as fast or faster in {ours} of the {len(compared)} queries" in text


@pytest.mark.parametrize("path", sorted(RESULTS.glob("*.json")), ids=lambda path: path.stem)
def test_targets_are_stated(path: Path) -> None:
    targets = json.loads(path.read_text())["targets"]

    assert targets
    for each in targets:
        words, bound = each["wanted"].rsplit(" ", 1)
        target = {"at most": at_most, "at least": at_least}[words]
        assert target(each["name"], float(bound), each["measured"]) == each


def test_missing_measurement_does_not_reach_its_target() -> None:
    assert not at_most("ms", 5, None)["reached"]
    assert not at_least("times as fast", 5, None)["reached"]
