"""What the supervisor needs for a table beside its policy's own fields, in one place."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, fields
from datetime import datetime
from typing import Any, Self

from hudi_index_service.build.strategy import UNLIMITED, Budget
from hudi_index_service.config import Settings
from hudi_index_service.fleet.observation import Refusal
from hudi_index_service.fleet.policies.policy import TablePolicy
from hudi_index_service.table import IndexedTable

_OF_BUILDS = ("lucene", "hbase", "build", "read", "clean", "history")
_FOLDERS = ("cache_folder", "cache_max_mb", "state_folder")


@dataclass(frozen=True, slots=True)
class DefinitionsSeen:
    """How a table's definitions relate to the fleet's file; see `Observation`."""

    invalid_definition: Refusal | None = None
    clash: Refusal | None = None
    drift: Sequence[str] = ()
    plan: Sequence[str] = ()
    plan_id: str = ""
    plan_bytes: int = 0

    def to_dict(self) -> dict[str, Any]:
        """As JSON."""
        return asdict(self)

    @classmethod
    def from_dict(cls, content: Mapping[str, Any]) -> Self:
        """Reads what `to_dict` gives."""
        return cls(
            _refusal(content.get("invalid_definition")),
            _refusal(content.get("clash")),
            tuple(content.get("drift", ())),
            tuple(content.get("plan", ())),
            content.get("plan_id", ""),
            content.get("plan_bytes", 0),
        )

    def fields(self) -> dict[str, Any]:
        """The fields of an `Observation`."""
        return {each.name: getattr(self, each.name) for each in fields(self)}


@dataclass(frozen=True, slots=True)
class Differences:
    """What a comparison of a table's definitions with the fleet's file found, without a plan.

    Attributes:
        changes: Whether there is something to plan.
    """

    clash: Refusal | None = None
    drift: Sequence[str] = ()
    changes: bool = False


NONE_DIFFERS = Differences()


class Means:
    """By default the same for each table."""

    def storage_options(self, policy: TablePolicy) -> Mapping[str, str]:
        """The options of its store, read again at each use, since secrets rotate.

        Raises:
            ConfigInvalid: they cannot be read.
        """
        return {}

    def settings(self, policy: TablePolicy, settings: Settings) -> Settings:
        """The settings for it."""
        return settings

    def differences(self, policy: TablePolicy, table: IndexedTable) -> Differences:
        """Compares the table's definitions with the policy's. Called in the service, when something
        has changed: it must start no JVM.

        Raises:
            IndexServiceError: the table cannot be read.
        """
        return NONE_DIFFERS

    def definitions(self, policy: TablePolicy) -> Mapping[str, Any]:
        """What `builds.definitions.define` needs of the policy, as JSON."""
        return {}

    def may_build(self, policy: TablePolicy, now: datetime) -> bool:
        """Whether a build that nobody asked for may begin now."""
        return True

    def budget(self, policy: TablePolicy) -> Budget:
        """The limits of one build."""
        return UNLIMITED

    def backfill_seconds(self, policy: TablePolicy) -> float:
        """Of the base files that were there when an index was defined, those of how long before are
        built."""
        return 0.0

    def verify_sample(self, policy: TablePolicy) -> float:
        """The share of the entries, from 0 to 1, that is verified each week; 0 for none."""
        return policy.verify_sample


def settings_for_child(settings: Settings) -> dict[str, Any]:
    """The settings that a build needs, as JSON: not those of listeners, which hold secrets."""
    return settings.model_dump(mode="json", include={*_OF_BUILDS, *_FOLDERS})


def limits_of(budget: Budget) -> dict[str, float]:
    """A budget as in an `Order`."""
    return {name: value for name, value in asdict(budget).items() if value is not None}


def _refusal(content: Mapping[str, str] | None) -> Refusal | None:
    return None if content is None else Refusal(**content)
