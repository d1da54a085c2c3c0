"""Sets up a checkout: virtual environment, pinned dependencies, native wheels, Hudi's jar.

Everything here runs on the standard library alone, because it runs before anything is installed.
`make demo` and `make test` call `python -m dev.bootstrap`.
"""
