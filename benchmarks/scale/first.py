"""The first query of a process: `python -m benchmarks.scale.first TABLE WHERE` prints the rows; the
asking side takes the time from the start of the process to its end."""

import sys

from hudi_index_service import open_table

if __name__ == "__main__":
    print(open_table(sys.argv[1]).scan(sys.argv[2], columns=["key"]).to_arrow().num_rows)
