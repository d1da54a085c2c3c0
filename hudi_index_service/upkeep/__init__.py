"""What every wake-up does for one table: define the index of its write config, build, clean.

The triggers (callback, poll, daemon, spark-submit, Airflow, SQL's CALL) differ only in what wakes
them.
"""

from hudi_index_service.upkeep.table_upkeep import ResolvedConfig, TableUpkeep, configured
from hudi_index_service.upkeep.write_keys import WriteKeys, read_write_config, read_write_keys

__all__ = [
    "ResolvedConfig",
    "TableUpkeep",
    "WriteKeys",
    "configured",
    "read_write_config",
    "read_write_keys",
]
