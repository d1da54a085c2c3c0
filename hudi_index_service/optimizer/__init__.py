"""The optimizer: how shall each slice be read, and why?"""

from hudi_index_service.optimizer.plan import Access, QueryPlan, SlicePlan
from hudi_index_service.optimizer.rules import optimize
from hudi_index_service.optimizer.serving import ServingEntry

__all__ = ["Access", "QueryPlan", "ServingEntry", "SlicePlan", "optimize"]
