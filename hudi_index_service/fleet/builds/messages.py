"""What the service and a child process tell each other: one JSON document a line."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from pydantic import TypeAdapter

from hudi_index_service.config import Settings
from hudi_index_service.fleet.observation import DefinitionsSeen, Refusal
from hudi_index_service.fleet.policies.policy import TablePolicy
from hudi_index_service.index.metadata.build_records import BuildProgress

_OF_BUILDS = ("lucene", "hbase", "build", "read", "clean", "history")
_FOLDERS = ("cache_folder", "cache_max_mb", "state_folder")


@dataclass(frozen=True, slots=True)
class Order:
    """What a child is to do with one table.

    Attributes:
        request: The id of the request.
        action: ``build``, ``clean``, ``verify`` or ``define``; of a page's query ``count`` or
            ``explain``.
        policy: What holds for the table.
        is_asked: Whether an operator has asked for it: then base files that failed recently are
            tried again, all entries are verified, and the plan of `plan_id` is approved.
        strategy: Which base files a build covers; "" for what the table's write config says, or
            else its policy.
        dry_run: Whether a clean only counts.
        repair: Whether a verification builds damaged entries anew.
        plan_id, plan_bytes: Which plan is approved; see `DefinitionPlan`.
        where: The predicate of a query; it may be secret.
        seconds: How long a query may take.
        storage_options: As for `open_table`; they may be secret.
        settings: The sections of the settings, as JSON; see `settings_for_child`.
        trigger: What asked for it, for the log.
        traceparent: The span of what is done; see `hudi_index_service.fleet.tracing`.
        log_level: The least level of what is logged.
    """

    request: str
    action: str
    policy: TablePolicy
    is_asked: bool = False
    strategy: str = ""
    dry_run: bool = False
    repair: bool = False
    plan_id: str = ""
    plan_bytes: int = 0
    where: str = ""
    seconds: float = 0.0
    storage_options: Mapping[str, str] = field(default_factory=dict)
    settings: Mapping[str, Any] = field(default_factory=dict)
    trigger: str = ""
    traceparent: str = ""
    log_level: int = 20

    @property
    def table(self) -> str:
        """The table's base path."""
        return self.policy.uri

    def __repr__(self) -> str:  # the options may be secret
        return f"<Order {self.request}: {self.action} {self.table}>"


@dataclass(frozen=True, slots=True)
class Progressed:
    """The progress of a build."""

    request: str
    progress: BuildProgress


@dataclass(frozen=True, slots=True)
class Counted:
    """What the child has done since it last told.

    Attributes:
        requests: Requests to stores, by operation.
        queries: Queries that it ran, each by the names of `QueryTaken`.
    """

    request: str
    requests: Mapping[str, int] = field(default_factory=dict)
    queries: Sequence[Mapping[str, Any]] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class Logged:
    """A line of the child's log."""

    level: int
    logger: str
    message: str


@dataclass(frozen=True, slots=True)
class Ended:
    """How an order ended in the child.

    Attributes:
        outcome: ``finished``, ``failed``, ``cancelled``, ``out_of_memory``; or what is to be done
            later: ``busy``, if another process builds the table, or ``interrupted`` by a signal, as
            when systemd ends a service with its children.
        error: Why it did not finish; None if it did, or was ended from outside.
        built: The entries that were built.
        failed: The entries that could not be built.
        deferred: Those that failed recently, and are left to a later build.
        broke_off: Whether an error ended it, so that the table is to rest. Base files that failed
            alone are deferred by the next build.
        retry_seconds: When deferred base files are due again; None if there are none.
        version: The table's version before it began, as by `TableUpkeep.version`; "" if unknown.
        summary: What a clean or a verification found, in one sentence.
        damaged: The base files whose entries a verification found damaged.
        definitions: What `define` tells of the definitions; None if it could not.
    """

    request: str
    outcome: str
    error: Refusal | None = None
    built: int = 0
    failed: int = 0
    deferred: int = 0
    broke_off: bool = False
    retry_seconds: float | None = None
    version: str = ""
    summary: str = ""
    damaged: int = 0
    definitions: DefinitionsSeen | None = None


def ended_by(order: Order, error: Exception, *, outcome: str = "failed", built: int = 0) -> Ended:
    """The end of an order by an error, after which the table rests."""
    return Ended(order.request, outcome, Refusal.of(error), built, broke_off=True)


def settings_for_child(settings: Settings) -> dict[str, Any]:
    """The settings that a build needs, as JSON: not those of listeners, which hold secrets."""
    return settings.model_dump(mode="json", include={*_OF_BUILDS, *_FOLDERS})


Message = Order | Progressed | Counted | Logged | Ended

_KINDS: Mapping[str, TypeAdapter[Message]] = {
    kind.__name__: TypeAdapter(kind) for kind in (Order, Progressed, Counted, Logged, Ended)
}


def line_of(message: Message) -> bytes:
    """A message as a line, with its end."""
    kind = type(message).__name__
    content = _KINDS[kind].dump_python(message, mode="json")
    return json.dumps({"kind": kind, **content}).encode() + b"\n"


def message_of(line: bytes) -> Message:
    """The message of a line.

    Raises:
        ValueError: it is none.
    """
    content = json.loads(line)
    try:
        kind = _KINDS[content.pop("kind")]
    except (AttributeError, KeyError, TypeError) as error:
        raise ValueError("the line is no message") from error
    return kind.validate_python(content)
