"""The cost of reading: constants, and a model over them."""

from hudi_index_service.optimizer.cost.constants import (
    Constants,
    constants_path,
    forget_constants,
    load_constants,
)
from hudi_index_service.optimizer.cost.model import CostModel

__all__ = [
    "Constants",
    "CostModel",
    "constants_path",
    "forget_constants",
    "load_constants",
]
