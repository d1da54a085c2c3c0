"""Proposes a first index: for which columns of a table one would pay, and what each costs."""

from hudi_index_service.maintain.propose.proposal import ColumnProposal, IndexProposal, Proposal

__all__ = ["ColumnProposal", "IndexProposal", "Proposal"]
