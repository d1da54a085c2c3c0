"""The optimizer's constants, measured on a file and an index made for that purpose."""

import stat
from pathlib import Path

import numpy as np
import pytest

from benchmarks.calibrate import MEANINGS, Calibration, calibrate
from benchmarks.calibrate.stored import store_constants
from benchmarks.calibrate.timing import explained
from hudi_index_service.config import Settings
from hudi_index_service.errors import ConfigInvalid
from hudi_index_service.optimizer.cost.constants import Constants, constants_path, load_constants

SPARK_CONSTANTS = {
    *("spark_scan_ms", "spark_file_ms", "spark_mib_ms"),
    *("handing_ms", "handed_row_ms", "handed_value_ms", "tasks_ms", "task_slice_ms"),
}
NOT_MEASURED = {"request_ms", "remote_mib_ms"} | SPARK_CONSTANTS


@pytest.fixture(scope="module")
def settings(tmp_path_factory: pytest.TempPathFactory) -> Settings:
    return Settings(state_folder=tmp_path_factory.mktemp("calibrate") / "state")


@pytest.fixture(scope="module")
def calibration(settings: Settings) -> Calibration:
    return calibrate(settings, seconds=0, rows=20_000)


def test_all_constants_but_those_of_servers_and_spark_are_measured(
    calibration: Calibration,
) -> None:
    assert calibration.measured == set(Constants.model_fields) - NOT_MEASURED
    for name in calibration.measured:
        assert getattr(calibration.new, name) > 0, name
        assert getattr(calibration.new, name) != getattr(calibration.old, name), name
    for name in NOT_MEASURED:
        assert getattr(calibration.new, name) == getattr(calibration.old, name), name


def test_single_steps_take_less_than_whole_operations(calibration: Calibration) -> None:
    new = calibration.new
    assert new.step_ms < new.lookup_ms < new.open_ms
    assert new.btree_step_ms < new.btree_lookup_ms < new.btree_open_ms
    assert new.scanned_value_ms < new.scan_ms
    assert new.value_ms < new.pages_ms


def test_measured_constants_are_used_from_then_on(
    calibration: Calibration, settings: Settings
) -> None:
    assert load_constants(settings) == calibration.new
    assert calibration.path == constants_path(settings)
    assert Constants.model_validate_json(calibration.path.read_bytes()) == calibration.new
    assert stat.S_IMODE(calibration.path.stat().st_mode) == 0o600
    assert [each.name for each in calibration.path.parent.iterdir()] == [calibration.path.name]


def test_the_error_names_a_file_that_cannot_be_written(tmp_path: Path) -> None:
    (tmp_path / "state").write_text("a file")
    with pytest.raises(ConfigInvalid, match=r"state/costs\.json cannot be written"):
        store_constants(tmp_path / "state" / "costs.json", Constants())


def test_each_constant_has_a_description() -> None:
    assert set(MEANINGS) == set(Constants.model_fields)


def test_the_fit_recovers_the_constants_behind_the_times() -> None:
    counts = np.random.default_rng(0).integers(1, 1_000, (20, 3))
    times = counts @ [0.5, 0.01, 3.0]
    assert explained(counts.tolist(), times.tolist()) == pytest.approx([0.5, 0.01, 3.0])


def test_no_fitted_constant_is_negative() -> None:
    # The second quantity seems to save time.
    constants = explained([[1, 0], [1, 1], [1, 5]], [10.0, 9.0, 8.0])
    assert constants == pytest.approx([pytest.approx(9, abs=1), 0.0])
