"""Stores constants in the state folder."""

from pathlib import Path

from hudi_index_service.errors import ConfigInvalid
from hudi_index_service.optimizer.cost.constants import Constants, forget_constants
from hudi_index_service.storage.disk import write_private_file


def store_constants(path: Path, constants: Constants) -> None:
    """Writes the file atomically, readable only by its owner.

    Raises:
        ConfigInvalid: the state folder cannot be written.
    """
    try:
        write_private_file(path, constants.model_dump_json(indent=1).encode() + b"\n")
    except OSError as error:
        raise ConfigInvalid(
            f"{path} cannot be written: {error}.", remedy="Set state_folder to a writable folder."
        ) from error
    forget_constants()
