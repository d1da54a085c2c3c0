"""Remedies in the words of the command line.

An error's own remedy speaks of Python where it names methods and arguments. The command line names
commands and options instead.
"""

import re

from hudi_index_service.errors import IndexServiceError

_GENERAL = {
    "INDEX_EXISTS": "Choose another name, drop the index first, or give --if-not-exists.",
    "TABLE_FEATURE_UNSUPPORTED": "`hudi-index sql` queries it: by Spark's own Hudi reader, without "
    "index.",
    "NEEDS_SPARK": "`hudi-index sql` queries it: by Spark's own Hudi reader, without index.",
    "PREDICATE_UNSUPPORTED": "Rewrite it with the supported operators.",
    "SCORE_UNAVAILABLE": "Call it in the SELECT, or its ORDER BY, whose WHERE has the one match; "
    "or use `hudi-index search`.",
    "INDEX_SERVICE_ERROR": "Run it again as `hudi-index --log-level debug ...`, and report what it "
    "prints.",
}
"""Code → what stands for the general remedy of the kind."""

_SPECIAL = (
    (r" ?Or pass spark=.*", " Or ask by `hudi-index sql`."),
    (
        r'Give the column the option "ranked".*',
        "Give the column the option ranked: `hudi-index alter TABLE INDEX --set "
        "COLUMN:analyzer=standard,ranked=true`, then `hudi-index refresh TABLE INDEX`.",
    ),
    (r"build\(partitions=…\), ", ""),
    (r"Search the column itself: scan.*", "Search the column itself by `hudi-index query`."),
    (r"Take to_arrow\(\) or .*", "Ask by `hudi-index sql`."),
)
"""Pattern of what a remedy says to users of Python → what stands for it; without backslashes."""


def told(error: IndexServiceError) -> str:
    """The error in one line: code, what is wrong, remedy."""
    return f"{error.code}: {error.message} {_remedy(error)}".rstrip()


def _remedy(error: IndexServiceError) -> str:
    general = type(error).default_remedy
    remedy = error.remedy
    if general:
        remedy = remedy.replace(general, _GENERAL.get(error.code, general))
    for python, command in _SPECIAL:
        remedy = re.sub(python, command, remedy)
    return " ".join(remedy.split())
