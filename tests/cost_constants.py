"""Sets what the optimizer takes reading to cost, where the service looks for it."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from hudi_index_service.config import Settings, settings
from hudi_index_service.optimizer.cost.constants import Constants, constants_path, forget_constants
from hudi_index_service.sql import enable

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


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


@contextmanager
def given_costs(enabled: "SparkSession") -> Iterator[Callable[..., None]]:
    """Gives a function that sets some of the constants until the end of the block. Decisions that
    others have asked the session for are forgotten."""

    def given(**milliseconds: float) -> None:
        set_constants(settings(), Constants(**milliseconds))
        enable(enabled)

    yield given
    unset_constants(settings())
    enable(enabled)
