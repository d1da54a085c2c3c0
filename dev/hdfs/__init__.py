"""A real HDFS on this machine's loopback interface, for tests.

`python -m dev.hdfs` starts one and runs it until Ctrl-C; `running_hdfs` does for a block of code.
It is Hadoop's own cluster for tests: two name nodes and two data nodes in one Java machine.
"""

from dev.hdfs.server import KERBEROS, Hdfs, HdfsFailed, running_hdfs

__all__ = ["KERBEROS", "Hdfs", "HdfsFailed", "running_hdfs"]
