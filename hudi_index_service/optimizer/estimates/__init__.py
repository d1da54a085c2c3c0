"""How many rows make a predicate TRUE: bounds that always hold, and a best guess between them."""

from hudi_index_service.optimizer.estimates.algebra import all_of, any_of, constant, rows_of
from hudi_index_service.optimizer.estimates.manifests import ManifestEstimates, estimated_rows

__all__ = ["ManifestEstimates", "all_of", "any_of", "constant", "estimated_rows", "rows_of"]
