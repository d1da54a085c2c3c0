"""How many examples a test tries: all of them where all tests run, a third in the fast tier."""

from hypothesis import settings

fast = False
"""Whether only fast tests run (`conftest.py`)."""


def share(count: int) -> int:
    """So many examples, or a third of them in the fast tier."""
    return count // 3 if fast else count


def examples(count: int) -> settings:
    """Hypothesis tries the same examples in every run: so many, or a third in the fast tier."""
    return settings(derandomize=True, deadline=None, database=None, max_examples=share(count))
