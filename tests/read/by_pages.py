"""Settings; not in conftest.py, which is imported before tests have a state folder of their own."""

from hudi_index_service.config import ReadSettings, Settings

BY_PAGES = Settings(read=ReadSettings(scan_fraction=1))
"""Rows are read by page in small files, too."""
