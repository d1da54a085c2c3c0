"""Which of the fleet's tables are one service's, if several share them."""

import hashlib
from dataclasses import dataclass

from hudi_index_service.errors import ConfigInvalid


@dataclass(frozen=True, slots=True)
class Shard:
    """The tables of one of several services.

    Attributes:
        number: From 1 to `of`.
    """

    number: int = 1
    of: int = 1

    @classmethod
    def parse(cls, text: str) -> "Shard":
        """The shard of a text such as ``2/3``. Raises ConfigInvalid."""
        number, _, of = text.partition("/")
        if not (number.isdecimal() and of.isdecimal() and 1 <= int(number) <= int(of)):
            raise ConfigInvalid(
                f"{text!r} is no shard.", remedy="Write its number and how many there are: 1/3."
            )
        return cls(int(number), int(of))

    def has(self, uri: str) -> bool:
        """Whether the table at this base path is one of its."""
        digest = hashlib.sha256(uri.encode()).digest()
        return int.from_bytes(digest[:8]) % self.of == self.number - 1
