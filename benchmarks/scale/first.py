"""The first query of a process: `python -m benchmarks.scale.first TABLE WHERE [STORAGE_OPTIONS]`
prints the number of rows. The caller measures the time from the start of the process to its end.
"""

import json
import sys

from hudi_index_service import open_table


def main(table: str, where: str, storage_options: str = "{}") -> None:
    """Runs the query."""
    with open_table(table, storage_options=json.loads(storage_options)) as opened:
        print(opened.scan(where, columns=["key"]).to_arrow().num_rows)


if __name__ == "__main__":
    main(*sys.argv[1:])
