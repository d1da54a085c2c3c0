"""Browser sessions: a signed cookie, and the token against forged forms that belongs to it.

The key is made at start, so a restart signs everybody out. Nothing is kept of a session: the cookie
names the token that it came from, which has to exist still, unchanged, in the file of tokens.
"""

import base64
import hashlib
import hmac
import json
import secrets
from collections.abc import Callable
from dataclasses import asdict, dataclass
from time import time

from hudi_index_service.fleet.web.access import Token, Tokens

_ANONYMOUS_SECONDS = 3600.0  # for the login form


@dataclass(frozen=True, slots=True)
class Session:
    """What the cookie says.

    Attributes:
        id: Random.
        name: The token's name; "" before the login.
        mark: Changes with the token, without telling its hash.
        end: When it ends, in seconds since 1970.
    """

    id: str
    name: str
    mark: str
    end: float


class Sessions:
    """Makes and checks the cookies of one service.

    Args:
        seconds: How long a session lasts.
        clock: Seconds since 1970.
    """

    def __init__(
        self, tokens: Tokens, *, seconds: float, clock: Callable[[], float] = time
    ) -> None:
        self._tokens, self._clock = tokens, clock
        self._key = secrets.token_bytes(32)
        self.seconds = seconds

    def anonymous(self) -> Session:
        """A session for the login form."""
        return Session(secrets.token_urlsafe(16), "", "", self._clock() + _ANONYMOUS_SECONDS)

    def of(self, token: Token) -> Session:
        """A new session for a token."""
        end = self._clock() + self.seconds
        return Session(secrets.token_urlsafe(16), token.name, self._mark(token), end)

    def cookie(self, session: Session) -> str:
        """The cookie's value."""
        content = base64.urlsafe_b64encode(json.dumps(asdict(session)).encode()).decode()
        return f"{content}.{self._sign('cookie', content)}"

    def read(self, cookie: str) -> Session | None:
        """The session of a cookie; None if another key signed it, or it has ended."""
        content, _, signature = cookie.partition(".")
        if not _equal(signature, self._sign("cookie", content)):
            return None
        session = Session(**json.loads(base64.urlsafe_b64decode(content)))
        return session if self._clock() < session.end else None

    def token(self, session: Session | None) -> Token | None:
        """The token that a session stands for; None if it is none, or has changed or gone."""
        token = self._tokens.named(session.name) if session and session.name else None
        if session is None or token is None or not _equal(session.mark, self._mark(token)):
            return None
        return token

    def form_token(self, session: Session) -> str:
        """What every form of a session sends along, and no other page can know."""
        return self._sign("form", session.id)

    def is_form_token(self, session: Session, sent: str) -> bool:
        """Whether a form sent the right one."""
        return _equal(sent, self.form_token(session))

    def _mark(self, token: Token) -> str:
        return self._sign("token", f"{token.name} {token.digest}")

    def _sign(self, purpose: str, text: str) -> str:
        message = f"{purpose}:{text}".encode("utf-8", "surrogatepass")
        return hmac.new(self._key, message, hashlib.sha256).hexdigest()


def _equal(sent: str, right: str) -> bool:
    return hmac.compare_digest(sent.encode("utf-8", "surrogatepass"), right.encode())
