"""Who may do what: tokens with a name, a role and tables, from a file that may change at any time.

The file has a line for each token. It holds hashes only, so tokens are long and random:

    # name    role     SHA-256 of the token     tables
    airflow   operate  2c26b46b68ffc68f…        sales.* hr.people
    writers   notify   fcde2b2edba56bf4…

Nothing of a line but its number is ever logged: somebody may have written the token itself there.
"""

import hashlib
import hmac
import ipaddress
import logging
import os
import re
import stat
from collections import OrderedDict
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import StrEnum
from fnmatch import fnmatchcase
from pathlib import Path
from threading import Lock
from time import monotonic

from hudi_index_service.errors import ConfigInvalid
from hudi_index_service.wording import reason

log = logging.getLogger(__name__)


class Role(StrEnum):
    """What a token is for."""

    NOTIFY = "notify"  #: writers, which report their commits
    READ = "read"
    OPERATE = "operate"
    METRICS = "metrics"  #: Prometheus, which sees numbers of all tables


class Action(StrEnum):
    """What a request does."""

    NOTIFY = "notify"
    SEE = "see"
    OPERATE = "operate"
    SCRAPE = "scrape"


ALLOWED: dict[Role, frozenset[Action]] = {
    Role.NOTIFY: frozenset({Action.NOTIFY}),
    Role.READ: frozenset({Action.SEE}),
    Role.OPERATE: frozenset({Action.NOTIFY, Action.SEE, Action.OPERATE}),
    Role.METRICS: frozenset({Action.SCRAPE}),
}
"""What each role may do; nothing else says so."""

ALL_TABLES = ("*",)

_MAX_FILE_BYTES = 2**20
_NAME = re.compile(r"[A-Za-z0-9._@-]{1,64}")
_SHA256 = re.compile(r"[0-9a-fA-F]{64}")


@dataclass(frozen=True, slots=True)
class Token:
    """A token as the file has it.

    Attributes:
        digest: The SHA-256 of the token, in small hexadecimal digits.
        tables: Patterns of the names of its tables, with ``*``, ``?`` and ``[…]``.
    """

    name: str
    role: Role
    digest: str
    tables: tuple[str, ...] = ALL_TABLES

    def __repr__(self) -> str:
        return f"<Token {self.name}: {self.role}>"

    @property
    def is_for_all(self) -> bool:
        """Whether it is for every table."""
        return "*" in self.tables

    def may(self, action: Action) -> bool:
        """Whether its role allows the action."""
        return action in ALLOWED[self.role]

    def covers(self, table: str) -> bool:
        """Whether it is for the table of that name."""
        return self.is_for_all or any(fnmatchcase(table, pattern) for pattern in self.tables)


def digest_of(secret: str) -> str:
    """The SHA-256 of a token, as a file of tokens has it."""
    return hashlib.sha256(secret.encode("utf-8", "surrogatepass")).hexdigest()


def parse_tokens(text: str) -> tuple[Token, ...]:
    """The tokens of a file.

    Raises:
        ValueError: a line is wrong; the message has its number, and nothing that it holds.
    """
    tokens: dict[str, Token] = {}
    digests: set[str] = set()
    for number, line in enumerate(text.splitlines(), start=1):
        words = line.split()
        if not words or words[0].startswith("#"):
            continue
        token = _token(words, f"line {number}")
        if token.name in tokens:
            raise ValueError(f"line {number}: an earlier line has this name")
        if token.digest in digests:
            raise ValueError(f"line {number}: an earlier line has this SHA-256")
        tokens[token.name] = token
        digests.add(token.digest)
    return tuple(tokens.values())


def _token(words: Sequence[str], where: str) -> Token:
    if len(words) < 3:
        raise ValueError(f"{where}: it needs a name, a role and a SHA-256")
    name, role, digest, *tables = words
    if not _NAME.fullmatch(name):
        raise ValueError(f"{where}: a name has at most 64 letters, digits, '.', '_', '@' or '-'")
    if role not in list(Role):
        raise ValueError(f"{where}: the second word is a role: {', '.join(Role)}")
    if not _SHA256.fullmatch(digest):
        raise ValueError(f"{where}: the third word is a SHA-256, 64 hexadecimal digits")
    if role == Role.METRICS and tables:
        raise ValueError(f"{where}: a token for metrics is for all tables, and names none")
    return Token(name, Role(role), digest.lower(), tuple(tables) or ALL_TABLES)


class Tokens:
    """The valid tokens. May be used in any thread.

    Args:
        path: The file; None for no file.
        others: Further tokens that are always valid.

    Raises:
        ConfigInvalid: the file cannot be read, is wrong, or may be read by others. Later, when it
            has changed, the same is logged, and the last good content stays valid.
    """

    def __init__(self, path: Path | None, others: Sequence[Token] = ()) -> None:
        self._path = path
        self._others = tuple(others)
        self._lock = Lock()
        self._content: bytes | None = None
        self._tokens: tuple[Token, ...] = ()
        self._complaint = ""
        if path is not None:
            self._read(path)

    def find(self, secret: str) -> Token | None:
        """The token with this secret; None if there is none. Takes as long for a wrong secret as
        for a right one."""
        digest = digest_of(secret)
        found = None
        for token in self._current():
            if hmac.compare_digest(token.digest, digest):
                found = token
        return found

    def named(self, name: str) -> Token | None:
        """The token of that name; None if there is none any more."""
        return next((token for token in self._current() if token.name == name), None)

    def _current(self) -> tuple[Token, ...]:
        if self._path is None:
            return self._others
        try:
            self._read(self._path)
        except ConfigInvalid as error:
            self._complain(str(error))
        else:
            self._complaint = ""
        return self._tokens + self._others

    def _read(self, path: Path) -> None:
        # Read whole each time: it is small, and the time of its change may not tell.
        try:
            with path.open("rb") as file:
                mode = os.fstat(file.fileno()).st_mode
                content = file.read(_MAX_FILE_BYTES + 1)
        except OSError as error:
            raise _refused(path, f"cannot be read: {reason(error)}") from error
        if mode & (stat.S_IROTH | stat.S_IWOTH | stat.S_IWGRP):
            raise _refused(
                path,
                "may be read by every user of this machine, or written by others",
                "Allow it to this user alone: chmod 600.",
            )
        if len(content) > _MAX_FILE_BYTES:
            raise _refused(path, f"is larger than {_MAX_FILE_BYTES} bytes")
        with self._lock:
            if content == self._content:
                return
            try:
                tokens = parse_tokens(content.decode())
            except UnicodeDecodeError as error:
                raise _refused(path, "is not text in UTF-8") from error
            except ValueError as error:
                raise _refused(path, f"is wrong: {error}") from error
            if self._content is not None:
                log.info("%s was read again: %d tokens.", path, len(tokens))
            self._content, self._tokens = content, tokens

    def _complain(self, complaint: str) -> None:
        if complaint != self._complaint:
            self._complaint = complaint
            log.error("%s The tokens read before stay valid.", complaint)


def _refused(path: Path, why: str, remedy: str | None = None) -> ConfigInvalid:
    return ConfigInvalid(
        f"The file of tokens {path} {why}.",
        remedy=remedy or "Write a line for each token: NAME ROLE SHA-256 [TABLES...].",
    )


class Attempts:
    """The failed sign-ins of each address in the last minutes. Only for the event loop's thread.

    Args:
        most: The failures within `seconds` after which an address has to wait.
        clock: Seconds of a clock that never goes back.
    """

    _MOST_ADDRESSES = 10_000

    def __init__(
        self, *, most: int = 10, seconds: float = 60.0, clock: Callable[[], float] = monotonic
    ) -> None:
        self._most, self._seconds, self._clock = most, seconds, clock
        self._failures: OrderedDict[str, list[float]] = OrderedDict()

    def wait(self, address: str) -> float:
        """The seconds that an address has to wait; 0 if it may try."""
        recent = self._recent(_network(address))
        return recent[0] + self._seconds - self._clock() if len(recent) >= self._most else 0.0

    def failed(self, address: str) -> None:
        """Counts a failure of an address."""
        network = _network(address)
        self._failures[network] = [*self._recent(network), self._clock()][-self._most :]
        self._failures.move_to_end(network)
        while len(self._failures) > self._MOST_ADDRESSES:
            self._failures.popitem(last=False)

    def _recent(self, network: str) -> list[float]:
        since = self._clock() - self._seconds
        return [moment for moment in self._failures.get(network, ()) if moment > since]


def _network(address: str) -> str:
    """What one client has all addresses of: of IPv6, the first 64 bits."""
    try:
        parsed = ipaddress.ip_address(address.partition("%")[0])
    except ValueError:
        return address
    if parsed.version == 4:
        return address
    return str(ipaddress.ip_network((parsed, 64), strict=False))
