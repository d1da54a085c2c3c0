"""The optimizer: one ordered tuple of rules, each a module: a plan in, a plan out, and a reason."""

from hudi_index_service.optimizer.plan import Access, QueryPlan, SlicePlan
from hudi_index_service.optimizer.rules import optimize
from hudi_index_service.optimizer.serving import ServingEntry

__all__ = ["Access", "QueryPlan", "ServingEntry", "SlicePlan", "optimize"]
