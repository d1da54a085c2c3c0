"""SELECTs that read Hudi tables through their indexes."""

from hudi_index_service.sql.select.decision import RelationUse
from hudi_index_service.sql.select.rewrite import SelectRewriter
from hudi_index_service.sql.select.rewriting import Explain

__all__ = ["Explain", "RelationUse", "SelectRewriter"]
