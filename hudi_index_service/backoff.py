"""How long to wait after attempts that failed."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Backoff:
    """Exponential: `first` seconds after one failure, twice as long after each further one in a
    row, at most `longest`."""

    first: float
    longest: float

    def seconds(self, failures: int) -> float:
        """How long to wait after so many failures in a row; 0 after none."""
        if failures <= 0:
            return 0.0
        # The exponent is bounded, since 2.0 ** 1024 is an error.
        return min(self.longest, self.first * 2.0 ** min(failures - 1, 64))
