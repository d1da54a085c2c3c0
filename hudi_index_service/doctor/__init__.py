"""Checks an installation, and a table, before anything is defined or built; changes nothing."""

from hudi_index_service.doctor.check import Check, Diagnosis
from hudi_index_service.doctor.installation import installation_checks
from hudi_index_service.doctor.table import table_checks

__all__ = ["Check", "Diagnosis", "diagnose", "diagnose_table"]


def diagnose(table: str | None = None) -> Diagnosis:
    """Checks what the service needs on this machine, and what its optional parts need.

    Args:
        table: A table's base path, to check also whether it can be read and its index be written.
    """
    return Diagnosis((*installation_checks(), *(() if table is None else table_checks(table))))


def diagnose_table(table: str) -> Diagnosis:
    """Checks a table alone."""
    return Diagnosis(tuple(table_checks(table)))
