"""``configs/service.yaml`` says of every setting what its model says, with its default.

``python -m tests.config.test_service_yaml`` writes the file.
"""

import inspect
import os
from collections.abc import Iterator
from pathlib import Path
from textwrap import wrap
from typing import Any
from unittest.mock import patch

import pytest
import yaml
from pydantic import BaseModel

from dev.docs_site import documented
from hudi_index_service.config import Settings, load_settings

FILE = Path(__file__).parents[2] / "configs" / "service.yaml"
WIDTH = 100

HEAD = """\
The settings of the service, each with its default. Name a copy of this file in HUDI_INDEX_CONFIG.
An environment variable HUDI_INDEX_<SECTION>__<KEY> overrides this file, for example
HUDI_INDEX_READ__ENABLED=false. To add or change a setting, edit hudi_index_service/config.py, and
run python -m tests.config.test_service_yaml."""


def generated() -> str:
    """The file's content."""
    lines = list(_comment(HEAD))
    single = dict(Settings.model_fields)
    for name, field in Settings.model_fields.items():
        if inspect.isclass(field.annotation) and issubclass(field.annotation, BaseModel):
            del single[name]
            summary = (inspect.getdoc(field.annotation) or "").split("\n\n")[0]
            lines += ["", *_comment(summary), f"{name}:"]
            lines += _settings(field.annotation, field.annotation.model_fields, "  ")
    lines += ["", *_settings(Settings, single, "# ")]
    return "\n".join(lines) + "\n"


def _settings(model: type[BaseModel], fields: dict[str, Any], before: str) -> Iterator[str]:
    """The settings of a section, below what the model says of them."""
    meanings, said = documented(model), ""
    with patch.dict(os.environ, {"HOME": "/~", "XDG_CACHE_HOME": "", "XDG_STATE_HOME": ""}):
        for name, field in fields.items():
            if meanings[name] != said:
                said = meanings[name]
                yield from _comment(said, before.replace("# ", ""))
            default = field.get_default(call_default_factory=True)
            if isinstance(default, Path):
                default = str(default).removeprefix("/")
            shown = list(default) if isinstance(default, tuple) else default
            in_one_line = None if isinstance(shown, list) else False
            text = yaml.safe_dump({name: shown}, default_flow_style=in_one_line, width=WIDTH)
            yield f"{before}{text.rstrip()}"


def _comment(text: str, before: str = "") -> Iterator[str]:
    plain = " ".join(text.replace("\\|", "|").replace("`", "").split())
    yield from (
        f"{before}# {line}" for line in wrap(plain, WIDTH - len(before) - 2, break_on_hyphens=False)
    )


def test_the_file_is_what_the_models_say() -> None:
    assert FILE.read_text() == generated(), "run python -m tests.config.test_service_yaml"


def test_the_file_is_read_as_the_defaults(monkeypatch: pytest.MonkeyPatch) -> None:
    defaults = Settings()
    monkeypatch.setenv("HUDI_INDEX_CONFIG", str(FILE))
    assert load_settings() == defaults


if __name__ == "__main__":
    FILE.write_text(generated())
