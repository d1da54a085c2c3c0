"""Looks at the tables of a fleet file once, without a service: what `hudi-index fleet status
--config` shows."""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from functools import partial

from hudi_index_service import config
from hudi_index_service.config import Settings
from hudi_index_service.errors import IndexServiceError, StorageFailed
from hudi_index_service.fleet.looks import Look, Looker
from hudi_index_service.fleet.observation import Observation, Refusal
from hudi_index_service.fleet.policies.discovery import Discovery
from hudi_index_service.fleet.policies.file import FleetFile
from hudi_index_service.fleet.policies.policy import TablePolicy
from hudi_index_service.fleet.signals.attention import UNREACHABLE_POLLS, attention
from hudi_index_service.fleet.web.table_view import TableView, selected

_AT_A_TIME = 8


def survey(
    file: FleetFile, wanted: Callable[[str], bool] = lambda name: True
) -> tuple[list[TableView], list[Refusal]]:
    """The tables of the file by attention, and the problems of its sources. A table that cannot be
    looked at is looked at as often as makes it unreachable.

    Unlike a service, it knows of no reason that was muted, no build that waits, and no damage that
    only a verification finds.

    Args:
        wanted: Whether a table is to be looked at, by its name.
    """
    found = Discovery().discover(file)
    policies = [each for name, each in found.tables.items() if wanted(name)]
    with ThreadPoolExecutor(_AT_A_TIME, thread_name_prefix="survey") as threads:
        observations = list(threads.map(partial(_observed, config.settings()), policies))
    now = datetime.now(UTC)
    views = [TableView.of(each, lambda seen: attention(seen, now)) for each in observations]
    return selected(views), [Refusal.of(each.problem) for each in found.failed]


def _observed(settings: Settings, policy: TablePolicy) -> Observation:
    since = datetime.now(UTC)
    for _ in range(UNREACHABLE_POLLS):
        try:
            look = _look(settings, policy)
        except IndexServiceError as error:
            refusal = Refusal.of(error)
            continue
        return Observation(policy, at=datetime.now(UTC), **look.fields())
    return Observation(
        policy,
        at=datetime.now(UTC),
        unreachable_polls=UNREACHABLE_POLLS,
        unreachable_since=since,
        error=refusal,
    )


def _look(settings: Settings, policy: TablePolicy) -> Look:
    looker = Looker()
    try:
        return looker.look(policy, settings)
    except OSError as error:
        raise StorageFailed(f"{policy.uri} cannot be read: {error}.") from error
    finally:
        looker.close()
