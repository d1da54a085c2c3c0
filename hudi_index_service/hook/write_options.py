"""The Hudi write options that make a write call back, and the parts of a callback.

Hudi's commit callback is the only hook that plain write options can set from Python
(`HoodieWriteCommitCallbackConfig`, the same keys since 0.6). It posts once per data commit, after
the inline table services of that write have committed. Hudi only logs a status of 300 or above and
a timeout: the commit stands.
"""

import logging
from collections.abc import Mapping
from math import ceil

from hudi_index_service.hook.write_keys import (
    METADATA_PREFIX_OPTION,
    PREFIX,
    holds_write_keys,
)

log = logging.getLogger(__name__)

SECRET_HEADER = "HUDI-CALLBACK-KEY"
"""The header in which Hudi sends the value of `SECRET_OPTION`."""

SECRET_OPTION = "hoodie.write.commit.callback.http.api.key"

WAIT_PARAMETER = "wait"
"""The URL parameter by which one write sets the seconds to hold its answer."""

# The listener answers after `wait`. Hudi's own timeout handles a listener that is gone or stuck, so
# it must be somewhat longer.
TIMEOUT_MARGIN_SECONDS = 5


def callback_options(
    url: str, secret: str, *, wait: float, usual_wait: float | None = None
) -> dict[str, str]:
    """Write options that post each data commit to `url`.

    Args:
        secret: Value of the `SECRET_HEADER`.
        wait: Seconds that the listener may hold its answer.
        usual_wait: The listener's default for `wait`.
    """
    query = "" if usual_wait is None or wait == usual_wait else f"?{WAIT_PARAMETER}={wait:g}"
    return {
        "hoodie.write.commit.callback.on": "true",
        "hoodie.write.commit.callback.http.url": f"{url}{query}",
        SECRET_OPTION: secret,
        "hoodie.write.commit.callback.http.timeout.seconds": str(
            ceil(wait) + TIMEOUT_MARGIN_SECONDS
        ),
    }


def with_keys_in_commits(options: Mapping[str, str]) -> dict[str, str]:
    """The options, plus the one that makes Hudi store their ``hoodie.index.*`` keys with each
    commit. A prefix that the user set is kept; the keys then apply to this process only."""
    if not holds_write_keys(options):
        return dict(options)
    prefix = options.get(METADATA_PREFIX_OPTION, PREFIX)
    if not PREFIX.startswith(prefix):
        log.warning(
            "%s=%s: the hoodie.index.* keys are not stored with the commits, so no other process "
            "can read them.",
            METADATA_PREFIX_OPTION,
            prefix,
        )
    return {**options, METADATA_PREFIX_OPTION: prefix}
