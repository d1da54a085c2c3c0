"""Settings from the environment, a YAML file and defaults; errors name the setting."""

from pathlib import Path

import pytest

from hudi_index_service.config import (
    CleanSettings,
    Settings,
    effective,
    load_settings,
    settings,
    warn_of_unknown_variables,
)
from hudi_index_service.errors import ConfigInvalid


@pytest.fixture(autouse=True)
def _clean_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("HUDI_INDEX_CONFIG", "HUDI_INDEX_READ__ENABLED", "HUDI_INDEX_CACHE_FOLDER"):
        monkeypatch.delenv(name, raising=False)


@pytest.fixture
def yaml(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """Writes the YAML file that HUDI_INDEX_CONFIG names."""

    def write(text: str | bytes) -> None:
        path = tmp_path / "service.yaml"
        path.write_bytes(text.encode() if isinstance(text, str) else text)
        monkeypatch.setenv("HUDI_INDEX_CONFIG", str(path))

    return write


def test_the_cache_follows_xdg(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert load_settings().cache_folder == tmp_path / "hudi-index-service"


def test_arguments_override_the_environment_which_overrides_the_file(
    yaml, monkeypatch: pytest.MonkeyPatch
) -> None:
    yaml("read: {max_predicates: 3, parallelism: 7}\nclean: {retention: instant}\n")
    assert load_settings().read.max_predicates == 3

    monkeypatch.setenv("HUDI_INDEX_READ__MAX_PREDICATES", "4")
    found = load_settings()
    assert (found.read.max_predicates, found.read.parallelism) == (4, 7)
    assert found.clean.retention == "instant"
    assert Settings(clean=CleanSettings(grace_seconds=5)).clean.grace_seconds == 5


def test_an_empty_file_is_fine(yaml) -> None:
    yaml("# nothing yet\n")
    assert load_settings() == Settings()


@pytest.mark.parametrize(
    ("name", "value", "setting"),
    [
        ("HUDI_INDEX_READ__SCAN_FRACTION", "1.5", "read.scan_fraction"),
        ("hudi_index_reed__enabled", "false", "hudi_index_reed__enabled"),
        ("HUDI_INDEX_LUCENE__HEAP_MB", "0", "lucene.heap_mb"),
        ("HUDI_INDEX_CLEAN__RETENTION", "forever", "clean.retention"),
        ("HUDI_INDEX_HOOK__PORT", "70000", "hook.port"),
        ("HUDI_INDEX_READ", "{", "read"),
    ],
)
def test_errors_in_the_environment_are_named(
    monkeypatch: pytest.MonkeyPatch, name: str, value: str, setting: str
) -> None:
    monkeypatch.setenv(name, value)
    with pytest.raises(ConfigInvalid) as invalid:
        load_settings()
    assert setting in invalid.value.message
    assert invalid.value.code == "CONFIG_INVALID"


@pytest.mark.parametrize(
    ("text", "named"),
    [
        ("read: {parallelism: many}", "read.parallelism"),
        ("read: true", "read"),
        ("- read", "service.yaml"),
        ("just text", "service.yaml"),
        (b"\xff\xfe\xfa", "service.yaml"),
    ],
)
def test_errors_in_the_file_are_named(yaml, text: str | bytes, named: str) -> None:
    yaml(text)
    with pytest.raises(ConfigInvalid) as invalid:
        load_settings()
    assert named in invalid.value.message


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (
            "build: {heartbeat_seconds: 120}",
            "Setting build: heartbeat_seconds=120 has to be less than stale_seconds=120, or "
            "running builds count as dead.",
        ),
        (
            "build: {retry_max_seconds: 59}",
            "Setting build: retry_max_seconds=59 is less than retry_seconds=60.",
        ),
        (
            "hook: {backoff_seconds: 300.5}",
            "Setting hook: backoff_max_seconds=300 is less than backoff_seconds=300.5.",
        ),
        (
            "hbase: {backoff_seconds: 31}",
            "Setting hbase: backoff_max_seconds=30 is less than backoff_seconds=31.",
        ),
        ("hbase: {tls_ca: /ca.pem}", "Setting hbase: tls_ca is given, and tls is off."),
        (
            "hbase: {tls: true, tls_key: /key.pem}",
            "Setting hbase: tls_key is given without tls_cert.",
        ),
    ],
)
def test_inconsistent_settings_are_named(yaml, text: str, message: str) -> None:
    yaml(text)
    with pytest.raises(ConfigInvalid) as invalid:
        load_settings()
    assert invalid.value.message == message


def test_secrets_are_not_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HUDI_INDEX_HOOK__SECRET", "hunter2")
    found = load_settings()
    assert found.hook.secret is not None
    assert found.hook.secret.get_secret_value() == "hunter2"
    assert "hunter2" not in repr(found)


def test_settings_are_read_once_per_process(monkeypatch: pytest.MonkeyPatch) -> None:
    settings.cache_clear()
    first = settings()
    monkeypatch.setenv("HUDI_INDEX_READ__ENABLED", "false")
    assert settings() is first
    settings.cache_clear()
    assert settings().read.enabled is False
    settings.cache_clear()


def test_unknown_variables_are_told_once(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    for name in ("HUDI_INDEX_NOSUCH", "HUDI_INDEX_CACHE_FODLER", "HUDI_INDEX_CACHE_MAX_MB"):
        monkeypatch.setenv(name, "1")
    monkeypatch.setenv("HUDI_INDEX_HUDI_JAR", "/hudi.jar")
    warn_of_unknown_variables.cache_clear()

    effective(None)
    effective(Settings())

    assert caplog.messages == [
        "HUDI_INDEX_CACHE_FODLER is no setting, and is ignored. Did you mean cache_folder?",
        "HUDI_INDEX_NOSUCH is no setting, and is ignored.",
    ]
    warn_of_unknown_variables.cache_clear()
