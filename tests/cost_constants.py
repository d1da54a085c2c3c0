"""Sets what the optimizer takes reading to cost, where the service looks for it."""

from hudi_index_service.config import Settings
from hudi_index_service.optimizer.cost import Constants
from hudi_index_service.optimizer.cost.constants import constants_path, forget_constants


def set_constants(settings: Settings, constants: Constants) -> None:
    """As `make calibrate` would have written them."""
    path = constants_path(settings)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(constants.model_dump_json())
    forget_constants()


def unset_constants(settings: Settings) -> None:
    """The service's own hold again."""
    constants_path(settings).unlink(missing_ok=True)
    forget_constants()
