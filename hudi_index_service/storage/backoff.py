"""Waiting times after failed attempts."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Backoff:
    """Exponential backoff: `first` seconds after one failure, doubled with each further failure in
    a row, at most `longest`."""

    first: float
    longest: float

    def seconds(self, failures: int) -> float:
        """The wait after this many failures in a row; 0 after none."""
        if failures <= 0:
            return 0.0
        # The exponent is bounded, since 2.0 ** 1024 overflows.
        return min(self.longest, self.first * 2.0 ** min(failures - 1, 64))
