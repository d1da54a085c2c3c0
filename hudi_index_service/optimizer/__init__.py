"""The optimizer: an ordered tuple of rules, one per module, that map a plan to a plan."""

from hudi_index_service.optimizer.plan import Access, QueryPlan, SlicePlan
from hudi_index_service.optimizer.rules import optimize
from hudi_index_service.optimizer.serving import ServingEntry

__all__ = ["Access", "QueryPlan", "ServingEntry", "SlicePlan", "optimize"]
