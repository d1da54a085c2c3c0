"""The Hudi write options that make a write call back, and what arrives then.

Hudi's commit callback is the only hook that plain write options reach from Python
(`HoodieWriteCommitCallbackConfig`, the same keys since 0.6). It posts once per data commit, after
the inline table services of that write have committed. An answer of 300 and above, or none within
the timeout, is only logged by Hudi: the commit stands.
"""

import logging
from collections.abc import Mapping
from math import ceil

from hudi_index_service.upkeep.write_keys import (
    METADATA_PREFIX_OPTION,
    PREFIX,
    holds_write_keys,
)

log = logging.getLogger(__name__)

SECRET_HEADER = "HUDI-CALLBACK-KEY"
"""The header in which Hudi sends the value of `SECRET_OPTION`."""

SECRET_OPTION = "hoodie.write.commit.callback.http.api.key"

WAIT_PARAMETER = "wait"
"""Seconds for which one write wants its answer held, in the URL it posts to."""

# The listener answers by itself after `wait`; Hudi's own timeout is there for a listener that is
# gone or stuck, so it has to be somewhat longer.
TIMEOUT_MARGIN_SECONDS = 5


def callback_options(
    url: str, secret: str, *, wait: float, usual_wait: float | None = None
) -> dict[str, str]:
    """Write options that post each data commit to `url`.

    Args:
        secret: Sent in the `SECRET_HEADER`.
        wait: Seconds that the listener may hold its answer.
        usual_wait: How long it holds it unless it is told otherwise.
    """
    asking = "" if usual_wait is None or wait == usual_wait else f"?{WAIT_PARAMETER}={wait:g}"
    return {
        "hoodie.write.commit.callback.on": "true",
        "hoodie.write.commit.callback.http.url": f"{url}{asking}",
        SECRET_OPTION: secret,
        "hoodie.write.commit.callback.http.timeout.seconds": str(
            ceil(wait) + TIMEOUT_MARGIN_SECONDS
        ),
    }


def with_keys_in_commits(options: Mapping[str, str]) -> dict[str, str]:
    """The options, and the one by which Hudi stores the ``hoodie.index.*`` keys among them with
    each commit. A prefix of the user's own stays: then the keys count for this process only."""
    if not holds_write_keys(options):
        return dict(options)
    prefix = options.get(METADATA_PREFIX_OPTION, PREFIX)
    if not PREFIX.startswith(prefix):
        log.warning(
            "%s=%s: the hoodie.index.* keys are not stored with the commits, so that no other "
            "process knows them.",
            METADATA_PREFIX_OPTION,
            prefix,
        )
    return {**options, METADATA_PREFIX_OPTION: prefix}
