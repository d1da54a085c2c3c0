"""The Hudi write options that make a write call back, and what arrives then.

Hudi's commit callback is the only hook that plain write options reach from Python
(`HoodieWriteCommitCallbackConfig`, the same keys since 0.6). It posts once per data commit, after
the inline table services of that write have committed. An answer of 300 and above, or none within
the timeout, is only logged by Hudi: the commit stands.
"""

from math import ceil

SECRET_HEADER = "HUDI-CALLBACK-KEY"
"""The header in which Hudi sends the value of `SECRET_OPTION`."""

SECRET_OPTION = "hoodie.write.commit.callback.http.api.key"

# The listener answers by itself after `wait`; Hudi's own timeout is there for a listener that is
# gone or stuck, so it has to be somewhat longer.
TIMEOUT_MARGIN_SECONDS = 5


def callback_options(url: str, secret: str, *, wait: float) -> dict[str, str]:
    """Write options that post each data commit to `url`.

    Args:
        secret: Sent in the `SECRET_HEADER`.
        wait: Seconds that the listener may hold its answer.
    """
    return {
        "hoodie.write.commit.callback.on": "true",
        "hoodie.write.commit.callback.http.url": url,
        SECRET_OPTION: secret,
        "hoodie.write.commit.callback.http.timeout.seconds": str(
            ceil(wait) + TIMEOUT_MARGIN_SECONDS
        ),
    }
