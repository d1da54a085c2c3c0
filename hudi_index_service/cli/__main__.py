"""``python -m hudi_index_service.cli``."""

from hudi_index_service.cli import main

main()
