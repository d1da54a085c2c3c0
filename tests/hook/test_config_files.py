"""The files in configs/ agree with the code."""

from pathlib import Path

from hudi_index_service.config import Settings, load_settings
from hudi_index_service.hook.listener import CALLBACK_PATH
from hudi_index_service.hook.write_options import callback_options
from hudi_index_service.hudi.properties import parse_properties

CONFIGS = Path(__file__).resolve().parents[2] / "configs"


def test_service_file_is_read_as_the_defaults(monkeypatch):
    defaults = Settings()
    monkeypatch.setenv("HUDI_INDEX_CONFIG", str(CONFIGS / "service.yaml"))
    assert load_settings() == defaults


def test_write_config_contains_the_callback_keys():
    options = parse_properties((CONFIGS / "hudi-write.properties").read_bytes())

    expected = callback_options(f"http://127.0.0.1:9099{CALLBACK_PATH}", "replace-this", wait=0)
    assert options.items() >= expected.items()
