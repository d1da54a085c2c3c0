"""Secrets between the daemons and their clients."""

import secrets
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path

from pydantic import SecretStr

from hudi_index_service.errors import ConfigInvalid
from hudi_index_service.storage.private_file import write_private_file


def is_set(setting: SecretStr | None) -> bool:
    """Whether a setting has a secret."""
    return bool(setting and setting.get_secret_value())


def secret_of(setting: SecretStr | None, name: str) -> str:
    """The secret of a setting; if it has none, a random one.

    Args:
        name: The setting's name, for messages.

    Raises:
        ConfigInvalid: a header cannot carry it.
    """
    configured = setting.get_secret_value() if setting else ""
    if not configured:
        # Spark redacts option values that contain this word when it prints a plan.
        return f"secret-{secrets.token_urlsafe(32)}"
    if not (configured.isascii() and configured.isprintable()) or configured != configured.strip():
        raise ConfigInvalid(
            f"The setting {name} cannot be sent in a header.",
            remedy="Use printable ASCII characters, without a space at either end.",
        )
    return configured


@contextmanager
def kept_in_file(path: Path, lines: Iterable[str], variable: str) -> Iterator[None]:
    """Keeps lines with a random secret in a file that only this user can read, while the context
    lasts.

    Args:
        variable: The environment variable that sets another secret, for messages.

    Raises:
        ConfigInvalid: the file cannot be written.
    """
    try:
        write_private_file(path, "".join(f"{line}\n" for line in lines).encode())
    except OSError as error:
        raise ConfigInvalid(
            f"Cannot write the secret of this run to {path}: {error}.",
            remedy=f"Set {variable}, or set state_folder to a folder of yours.",
        ) from error
    try:
        yield
    finally:
        path.unlink(missing_ok=True)
