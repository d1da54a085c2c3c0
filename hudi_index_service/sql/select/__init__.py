"""SELECTs that read Hudi tables through their indexes."""

from hudi_index_service.sql.relations.decision import RelationUse
from hudi_index_service.sql.select.catalyst_rule import SelectRewriter
from hudi_index_service.sql.select.plan_rewriter import Explain

__all__ = ["Explain", "RelationUse", "SelectRewriter"]
