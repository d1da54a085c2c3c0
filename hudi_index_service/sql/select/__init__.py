"""SELECTs that read Hudi tables through their indexes."""

from hudi_index_service.sql.select.decision import RelationUse
from hudi_index_service.sql.select.rewrite import SelectRewriter

__all__ = ["RelationUse", "SelectRewriter"]
