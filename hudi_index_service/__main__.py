"""``python -m hudi_index_service``: the command line."""

from hudi_index_service.cli import main

main()
