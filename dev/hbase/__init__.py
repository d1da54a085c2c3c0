"""A real HBase on this machine's loopback interface, for tests and measurements.

`python -m dev.hbase` starts one and runs it until Ctrl-C; `running_hbase` does for a block of code.
It is HBase standalone (master, region server and ZooKeeper in one Java machine, data in a folder)
and HBase's Thrift server in another.
"""

from dev.hbase.server import HBase, HBaseFailed, running_hbase

__all__ = ["HBase", "HBaseFailed", "running_hbase"]
