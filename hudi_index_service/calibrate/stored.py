"""Keeps constants in the state folder."""

import os
import tempfile
from pathlib import Path

from hudi_index_service.errors import ConfigInvalid
from hudi_index_service.optimizer.cost import Constants
from hudi_index_service.optimizer.cost.constants import forget_constants


def store_constants(path: Path, constants: Constants) -> None:
    """Writes the file at once or not at all, readable by its owner alone.

    Raises:
        ConfigInvalid: the state folder cannot be written.
    """
    try:
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        # Made with mode 0600.
        handle, name = tempfile.mkstemp(dir=path.parent, prefix=f"{path.name}.")
        try:
            with os.fdopen(handle, "wb") as file:
                file.write(constants.model_dump_json(indent=1).encode() + b"\n")
            Path(name).replace(path)
        except OSError:
            Path(name).unlink(missing_ok=True)
            raise
    except OSError as error:
        raise ConfigInvalid(
            f"{path} cannot be written: {error}.", remedy="Set state_folder to a folder of yours."
        ) from error
    forget_constants()
