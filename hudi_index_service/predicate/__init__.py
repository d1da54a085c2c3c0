"""Predicates: parsing, binding to the table's types, and evaluation with Spark's semantics."""

from hudi_index_service.predicate.evaluate import evaluate, keep
from hudi_index_service.predicate.fold import negation_normal_form
from hudi_index_service.predicate.text.parse import parse_predicate

__all__ = ["evaluate", "keep", "negation_normal_form", "parse_predicate"]
