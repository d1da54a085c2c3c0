"""The fleet file: which tables the service keeps, and what holds for them, by groups in order.

The first group that includes a table holds; what it does not state is from the file's ``defaults``,
and what these do not state is built in.
"""

import hashlib
import logging
from collections.abc import Iterator, Mapping
from datetime import timedelta
from pathlib import Path
from types import UnionType
from typing import Annotated, Any, Literal, Self, Union, get_args, get_origin

from pydantic import (
    BaseModel,
    Field,
    PrivateAttr,
    ValidationError,
    field_validator,
    model_validator,
)

from hudi_index_service.build.strategy import (
    NO_BACKFILL,
    UNLIMITED,
    Budget,
    Strategy,
)
from hudi_index_service.config import RetentionPolicy
from hudi_index_service.errors import FleetFileInvalid
from hudi_index_service.fleet.policies.file_parts import (
    STRICT,
    BudgetRules,
    BuildRules,
    Definition,
    Fraction,
    PrewarmRules,
    VerifyRules,
    WindowRules,
)
from hudi_index_service.fleet.policies.file_values import (
    Backfill,
    Duration,
    Size,
    StorageReference,
    is_secret,
)
from hudi_index_service.fleet.policies.marked_yaml import Marked, read_marked
from hudi_index_service.fleet.policies.policy import (
    AgentsMay,
    BuildAction,
    TablePolicy,
)
from hudi_index_service.fleet.policies.sources import Place, parse_source
from hudi_index_service.fleet.policies.windows import Window, Windows
from hudi_index_service.wording import counted, did_you_mean, reason

log = logging.getLogger(__name__)


class _Model(BaseModel):
    model_config = STRICT


class Rules(_Model):
    """What holds for tables, in ``defaults`` and in each group."""

    enabled: bool = True
    """Whether the tables are built; `false` pauses them: they are seen, never built."""
    owner: str = ""
    """Who answers for the tables."""
    labels: dict[str, str] = {}
    """Further labels, such as `team: billing`."""
    priority: int = 0
    """The higher, the sooner tables are built and shown."""
    definitions: list[Definition] = []
    """The indexes that the fleet defines."""
    apply: Literal["plan", "auto"] = "plan"
    """`plan` shows what would change until an operator approves; `auto` changes it at once."""
    max_backfill_bytes: Size = 10 * 2**30
    """With `apply: auto`, a change whose backfill reads more waits for an operator, too."""
    backfill: Backfill = NO_BACKFILL
    """Of the base files that were there when an index was defined: `none`, `newest N days`, or
    `all` of them are built. Days count back from the table's last instant of then."""
    strategy: Strategy = Strategy.INCREMENTAL
    """Which base files builds cover: `incremental`, `all` or `refresh`."""
    on: list[BuildAction] = ["clustering", "compaction"]
    """After what the strategy incremental builds: `clustering`, `compaction`, `commit`."""
    retention: RetentionPolicy | None = None
    """How long entries are kept: `file-slice` or `instant`; null for the service's setting."""
    poll: Duration = timedelta(minutes=1)
    """The time between two looks at a table's timeline."""
    windows: WindowRules | None = None
    """When builds may begin; null for any time."""
    max_lag: Duration | None = None
    """How long a due base file may wait before the table needs attention; null for no limit."""
    min_coverage: Fraction | None = None
    """The fraction of base files that each index should cover; null for no limit."""
    max_orphaned: Size | None = None
    """Bytes that may lie in entries that no snapshot needs; null for no limit."""
    budget: BudgetRules | None = None
    """The limits of one build; null for none."""
    build: BuildRules = BuildRules()
    """The process of a build."""
    verify: VerifyRules = VerifyRules()
    """Verification of entries."""
    prewarm: PrewarmRules | None = None
    """What is made ready for queries, at the start and after each change; null for nothing."""
    storage: dict[str, StorageReference] = {}
    """Options of the store: a text, `{file: PATH}` or `{env: NAME}`; secrets only by the latter
    two, which are read again for each use."""
    reads: bool = True
    """Whether the service answers queries on the tables."""
    agents: AgentsMay = "read"
    """What agents may do at `/mcp`, if the service answers queries: nothing (`none`), `read`, or
    also `change` indexes, with a token of the role operate."""
    on_removed: Literal["keep", "drop"] = "keep"
    """What becomes of an index of the fleet that left the file."""


class Group(Rules):
    """Tables, and what holds for them."""

    name: Annotated[str, Field(min_length=1)]
    """The group's name, unique in the file."""
    include: Annotated[list[str], Field(min_length=1)]
    """Paths, globs, and databases of Glue and Hive."""
    exclude: list[str] = []
    """Likewise, of what is included. Later groups may include it."""

    @field_validator("include", "exclude")
    @classmethod
    def _name_tables(cls, texts: list[str]) -> list[str]:
        for text in texts:
            parse_source(text)
        return texts

    def holds(self, place: Place) -> bool:
        """Whether the group includes the table, by its place alone."""
        return any(parse_source(text).matches(place) for text in self.include) and not any(
            parse_source(text).matches(place) for text in self.exclude
        )


class FleetFile(_Model):
    """The whole file."""

    version: Literal[1]
    """The form of the file: 1."""
    defaults: Rules = Rules()
    """What holds for every group that does not state it."""
    groups: list[Group] = []
    """In order: the first one that includes a table holds."""

    _marked: Marked = PrivateAttr(default_factory=Marked)
    _digest: str = PrivateAttr(default="")

    @model_validator(mode="before")
    @classmethod
    def _is_an_object(cls, value: Any) -> Any:
        if not isinstance(value, dict):
            raise ValueError("the file begins with version: 1, and has groups")
        return value

    @property
    def digest(self) -> str:
        """Equal for files with the same content."""
        return self._digest

    def read_from(self, marked: Marked, digest: str) -> Self:
        """The same, which knows the lines of its text."""
        self._marked, self._digest = marked, digest
        return self

    def rules(self, group: Group) -> Rules:
        """What holds for a group. A key is taken whole, with all below it."""
        given = {
            name: getattr(source, name)
            for source in (self.defaults, group)
            for name in Rules.model_fields
            if name in source.model_fields_set
        }
        return Rules.model_construct(**given)

    def origin(self, group: Group, key: str) -> str:
        """Where the value of a key of `Rules` is from, in words."""
        number = next(at for at, each in enumerate(self.groups) if each is group)
        if key in group.model_fields_set:
            return f"group {group.name}, line {self._marked.place(('groups', number, key)).line}"
        if key in self.defaults.model_fields_set:
            return f"defaults, line {self._marked.place(('defaults', key)).line}"
        return "built in"

    def group_of(self, place: Place) -> Group | None:
        """The first group that includes a table, by its place alone; None if there is none."""
        return next((each for each in self.groups if each.holds(place)), None)

    def policy(self, group: Group, place: Place, name: str) -> TablePolicy:
        """What holds for a table of the group.

        Args:
            name: The table's name in the fleet.
        """
        rules = self.rules(group)
        windows, budget, prewarm = rules.windows, rules.budget, rules.prewarm
        return TablePolicy(
            name=name,
            uri=place.uri,
            catalog=place.catalog,
            database=place.database,
            table=place.table,
            group=group.name,
            enabled=rules.enabled,
            owner=rules.owner,
            labels=rules.labels,
            priority=rules.priority,
            strategy=rules.strategy,
            poll=rules.poll,
            max_lag=rules.max_lag,
            min_coverage=rules.min_coverage,
            max_orphaned=rules.max_orphaned,
            build_timeout=rules.build.timeout,
            spark_above=rules.build.spark.above if rules.build.spark else None,
            spark_submit=tuple(rules.build.spark.submit) if rules.build.spark else (),
            on=tuple(rules.on),
            retention=rules.retention,
            definitions=tuple(each.desired() for each in rules.definitions),
            apply=rules.apply,
            max_backfill_bytes=rules.max_backfill_bytes,
            backfill=rules.backfill,
            on_removed=rules.on_removed,
            windows=Windows(windows.time_zone, tuple(map(Window.parse, windows.times)))
            if windows
            else Windows(),
            budget=Budget(**budget.model_dump()) if budget else UNLIMITED,
            verify_sample=rules.verify.sample,
            storage=rules.storage,
            reads=rules.reads,
            agents=rules.agents,
            prewarm=None if prewarm is None else prewarm.wanted(),
        )


def json_schema() -> dict[str, Any]:
    """The JSON schema of fleet files, for editors; ``configs/fleet.schema.json`` holds it."""
    schema = FleetFile.model_json_schema()
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", **schema, "title": "Fleet"}


def read_fleet_file(path: Path) -> FleetFile:
    """Reads a fleet file.

    Raises:
        FleetFileInvalid: it cannot be read, or has mistakes; the error names all of them.
    """
    try:
        return parse_fleet_file(path.read_bytes(), str(path))
    except OSError as error:
        raise FleetFileInvalid(
            f"The fleet file {path} cannot be read: {reason(error)}.",
            remedy="Name a file that the service's user may read.",
            mistakes=(f"{path} cannot be read: {reason(error)}",),
        ) from error


class FleetFileWatcher:
    """Keeps the last valid form of a fleet file. It compares the content, so that it notices a link
    that is led elsewhere, as Kubernetes does with a ConfigMap. Not for several threads at once.

    Args:
        path: The file, or a link to it.

    Raises:
        FleetFileInvalid: the file has mistakes. Later ones raise nothing; see `error`.

    Attributes:
        file: The fleet that holds.
        error: Why the file as it is now is not used; None if it is.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self.file: FleetFile = read_fleet_file(path)
        self.error: FleetFileInvalid | None = None

    def look(self) -> bool:
        """Reads the file again. Returns whether another fleet holds from now on; a wrong file
        leaves the one that holds."""
        try:
            read = read_fleet_file(self._path)
        except FleetFileInvalid as error:
            if self.error is None or self.error.message != error.message:
                log.error("The fleet stays as it was: %s", error)
            self.error = error
            return False
        self.error = None
        if read.digest == self.file.digest:
            return False
        log.info("%s has changed: its new form holds from now on.", self._path)
        self.file = read
        return True


def parse_fleet_file(content: bytes, source: str) -> FleetFile:
    """The fleet file of some content.

    Args:
        source: Its name, for messages.

    Raises:
        FleetFileInvalid: it has mistakes; the error names all of them.
    """
    try:
        marked = read_marked(content.decode("utf-8-sig"))
    except UnicodeDecodeError as error:
        raise _invalid(source, ["line 1: it is not UTF-8 text"]) from error
    found = [(place, _field(path), what) for path, place, what in marked.mistakes]
    if not found or marked.value is not None:
        found += [
            (marked.place(path), _field(path), what) for path, what in _beyond_models(marked.value)
        ]
        try:
            file = FleetFile.model_validate(marked.value)
        except ValidationError as error:
            for each in error.errors(include_url=False, include_input=False, include_context=False):
                path = tuple(each["loc"])
                found.append((marked.place(path), _field(path), _message(path, each)))
        else:
            if not found:
                return file.read_from(marked, hashlib.sha256(content).hexdigest())
    lines = [
        f"line {place.line}: {field}: {what}" if field else f"line {place.line}: {what}"
        for place, field, what in sorted(set(found))
    ]
    raise _invalid(source, lines)


def _invalid(source: str, mistakes: list[str]) -> FleetFileInvalid:
    listed = "; ".join(mistakes)
    end = "" if listed.endswith("?") else "."
    return FleetFileInvalid(
        f"{source} has {counted(len(mistakes), 'mistake')}: {listed}{end}",
        mistakes=mistakes,
    )


def _beyond_models(value: Any) -> Iterator[tuple[tuple[str | int, ...], str]]:
    """What the models do not find: names that there are twice, of groups and of definitions in one
    list; and secrets, which are not repeated in the message."""
    if not isinstance(value, dict):
        return
    groups = value.get("groups")
    yield from _repeated_names(groups, ("groups",), "group")
    numbered = enumerate(groups) if isinstance(groups, list) else ()
    holders: list[tuple[tuple[str | int, ...], Any]] = [(("defaults",), value.get("defaults"))]
    for path, holder in holders + [(("groups", at), group) for at, group in numbered]:
        if not isinstance(holder, dict):
            continue
        yield from _repeated_names(holder.get("definitions"), (*path, "definitions"), "definition")
        storage = holder.get("storage")
        for option, content in storage.items() if isinstance(storage, dict) else ():
            if is_secret(option, content):
                what = "a secret is not in the file: write {file: PATH} or {env: NAME}"
                yield (*path, "storage", option), what


def _repeated_names(
    items: Any, path: tuple[str | int, ...], noun: str
) -> Iterator[tuple[tuple[str | int, ...], str]]:
    seen = set()
    for at, item in enumerate(items if isinstance(items, list) else ()):
        name = item.get("name") if isinstance(item, dict) else None
        if isinstance(name, str):
            if name in seen:
                yield (*path, at, "name"), f"there is another {noun} {name}"
            seen.add(name)


def _field(path: tuple[str | int, ...]) -> str:
    """A path in words: ``groups[0].build.timeout``."""
    text = "".join(f"[{each}]" if isinstance(each, int) else f".{each}" for each in path)
    return text.removeprefix(".")


def _message(path: tuple[str | int, ...], mistake: Mapping[str, Any]) -> str:
    match mistake["type"]:
        case "extra_forbidden":
            known = _keys_at(path[:-1])
            hint = did_you_mean(str(path[-1]), known)
            return f"unknown key. {hint or 'Known here: ' + ', '.join(known) + '.'}".strip(" .")
        case "missing":
            return "it is missing"
        case "model_type":
            return "write keys with values"
    return str(mistake["msg"]).removeprefix("Value error, ").rstrip(".")


def _keys_at(path: tuple[str | int, ...]) -> list[str]:
    """The keys of the model at a path."""
    model: type[BaseModel] = FleetFile
    for part in path:
        if isinstance(part, str) and part in model.model_fields:
            model = _model_in(model.model_fields[part].annotation) or model
    return list(model.model_fields)


def _model_in(annotation: Any) -> type[BaseModel] | None:
    """The model that a type is, or is a list or an option of."""
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return annotation
    if get_origin(annotation) in (list, Annotated, Union, UnionType):
        return next(filter(None, map(_model_in, get_args(annotation))), None)
    return None
