"""The first query of a process: `python -m benchmarks.scale.first` reads a JSON object with the
contestant's ``name``, ``table``, ``where`` and ``how``, and prints the number of rows. The caller
measures the time from the start of the process to its end.
"""

import json
import sys
from typing import Any

from benchmarks.scale.contestant import ENGINES, How


def main() -> None:
    """Runs the query."""
    request: dict[str, Any] = json.load(sys.stdin)
    arguments = [request["table"]]
    if request["storage_options"]:
        arguments.append(request["storage_options"])
    engine = ENGINES[request["name"]](*arguments)
    print(engine.rows(request["where"], How(**request["how"])))


if __name__ == "__main__":
    main()
