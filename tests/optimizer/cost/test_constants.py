"""The constants of the cost model: shipped, calibrated, or unreadable."""

import logging
from collections.abc import Iterator

import pytest

from hudi_index_service.config import Settings
from hudi_index_service.optimizer.cost.constants import (
    Constants,
    constants_path,
    forget_constants,
    load_constants,
)


@pytest.fixture
def settings(tmp_path) -> Iterator[Settings]:
    forget_constants()
    yield Settings(state_folder=tmp_path)
    forget_constants()


def test_shipped_constants_are_used_until_calibrated(settings):
    assert load_constants(settings) == Constants()
    calibrated = Constants(scanned_mib_ms=1.5)
    constants_path(settings).write_text(calibrated.model_dump_json())
    assert load_constants(settings) == Constants(), "they are read once per process"
    forget_constants()
    assert load_constants(settings) == calibrated


def test_constants_missing_from_the_file_are_as_shipped(settings):
    constants_path(settings).write_text('{"open_ms": 9, "of_a_later_release": 1}')
    assert load_constants(settings) == Constants(open_ms=9)


@pytest.mark.parametrize("text", ["", "no JSON", '{"open_ms": 0}', '{"open_ms": "Infinity"}'])
def test_a_broken_file_is_ignored_with_one_warning(settings, text, caplog):
    caplog.set_level(logging.WARNING)
    constants_path(settings).write_text(text)
    assert load_constants(settings) == load_constants(settings) == Constants()
    assert caplog.text.count("costs.json is not used") == 1
