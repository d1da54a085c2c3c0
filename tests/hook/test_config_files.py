"""The files in configs/ agree with the code."""

from pathlib import Path

import yaml

from hudi_index_service.config import Settings, load_settings
from hudi_index_service.hook.listener import CALLBACK_PATH
from hudi_index_service.hook.write_options import callback_options
from hudi_index_service.hudi.properties import parse_properties

CONFIGS = Path(__file__).resolve().parents[2] / "configs"


def test_service_file_contains_every_setting_with_its_default(monkeypatch):
    defaults = Settings()
    monkeypatch.setenv("HUDI_INDEX_CONFIG", str(CONFIGS / "service.yaml"))

    assert load_settings() == defaults
    named = yaml.safe_load((CONFIGS / "service.yaml").read_text())
    for name, section in defaults.model_dump().items():
        if isinstance(section, dict):
            assert named[name].keys() == section.keys()
        else:
            assert f"# {name}:" in (CONFIGS / "service.yaml").read_text()


def test_write_config_contains_the_callback_keys():
    options = parse_properties((CONFIGS / "hudi-write.properties").read_bytes())

    expected = callback_options(f"http://127.0.0.1:9099{CALLBACK_PATH}", "replace-this", wait=0)
    assert options.items() >= expected.items()
