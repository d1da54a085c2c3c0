"""Rows of a fleet's tables by HTTP: what may be asked, and in which formats it is answered. The
routes are in `web/reads.py`."""
