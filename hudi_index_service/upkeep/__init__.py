"""What every wake-up does to one table: define what its write config asks for, build, clean.

The doors (callback, poll, daemon, spark-submit, Airflow, SQL's CALL) differ in what wakes them, and
in nothing else.
"""

from hudi_index_service.upkeep.table_upkeep import Followed, TableUpkeep
from hudi_index_service.upkeep.write_keys import WriteKeys, read_write_config, read_write_keys

__all__ = ["Followed", "TableUpkeep", "WriteKeys", "read_write_config", "read_write_keys"]
