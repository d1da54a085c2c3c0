"""Full-text functions in queries: ``match`` and its variants as conditions, ``score`` to order."""

from hudi_index_service.sql.full_text.calls import Calls
from hudi_index_service.sql.full_text.functions import FullTextFunctions
from hudi_index_service.sql.full_text.query import bound_calls

__all__ = ["Calls", "FullTextFunctions", "bound_calls"]
