"""Options of a store, by reference: the file or the variable that holds a value is named, and read
when the value is needed, so that a rotated one is used from then on."""

import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from hudi_index_service.errors import ConfigInvalid
from hudi_index_service.wording import reason


@dataclass(frozen=True, slots=True)
class FromFile:
    """A value that a file holds, without white space around it."""

    path: Path

    def __str__(self) -> str:
        return f"{{file: {self.path}}}"


@dataclass(frozen=True, slots=True)
class FromEnvironment:
    """A value that an environment variable of the service holds."""

    name: str

    def __str__(self) -> str:
        return f"{{env: {self.name}}}"


Reference = str | FromFile | FromEnvironment
"""A value as it stands, or where it is read."""


def resolved(options: Mapping[str, Reference]) -> dict[str, str]:
    """The options with their values of now. Keep them no longer than one build or poll takes, and
    log none.

    Raises:
        ConfigInvalid: a file cannot be read, or a variable is not set.
    """
    return {name: _value(name, reference) for name, reference in options.items()}


def _value(name: str, reference: Reference) -> str:
    match reference:
        case FromFile(path):
            try:
                return path.read_text("utf-8").strip()
            except UnicodeDecodeError:
                why = "it is not UTF-8 text"  # without the bytes, which are a secret
            except OSError as error:
                why = reason(error)
            raise ConfigInvalid(
                f"The storage option {name} is in the file {path}, which cannot be read: {why}.",
                remedy="Give the service's user a file with nothing but the value.",
            )
        case FromEnvironment(variable):
            if variable not in os.environ:
                raise ConfigInvalid(
                    f"The storage option {name} is in the environment variable {variable}, which "
                    "is not set.",
                    remedy="Set it for the service's process.",
                )
            return os.environ[variable]
        case _:
            return reference
