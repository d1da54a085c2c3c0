"""The example, the JSON schema and the docs' table of keys say what the models say.

``python -m tests.fleet.test_shipped`` writes schema and table.
"""

import json
import re
from collections.abc import Iterator
from dataclasses import fields

import jsonschema
import pytest
from pydantic import BaseModel

from hudi_index_service.files import FLEET_FILE, FLEET_SCHEMA
from hudi_index_service.fleet.policies.explain import value_text
from hudi_index_service.fleet.policies.file import (
    FleetFile,
    Group,
    Rules,
    json_schema,
    read_fleet_file,
)
from hudi_index_service.fleet.policies.file_parts import (
    BudgetRules,
    BuildRules,
    ColumnInFile,
    Definition,
    PrewarmRules,
    SparkRules,
    VerifyRules,
    WindowRules,
)
from hudi_index_service.fleet.policies.marked_yaml import read_marked
from hudi_index_service.fleet.policies.policy import TablePolicy
from hudi_index_service.fleet.policies.sources import Place
from tests.docs.markdown import ROOT

PAGE = ROOT / "docs" / "guides" / "fleet.md"
_TABLE = re.compile(r"<!-- keys of (?P<name>\w+) -->\n\n(?P<table>(?:\|.*\n)+)")
MODELS: dict[str, type[BaseModel]] = {
    each.__name__: each
    for each in (
        *(FleetFile, Group, Rules, Definition, ColumnInFile),
        *(WindowRules, BudgetRules, BuildRules, SparkRules, VerifyRules, PrewarmRules),
    )
}


def schema_text() -> str:
    return json.dumps(json_schema(), indent=2) + "\n"


def table(model: type[BaseModel]) -> str:
    """The table of a model's own keys."""
    return "".join(f"{line}\n" for line in _lines(model))


def _lines(model: type[BaseModel]) -> Iterator[str]:
    yield "| key | by default | meaning |"
    yield "| --- | --- | --- |"
    for name, field in model.model_fields.items():
        if model is Group and name in Rules.model_fields:
            continue
        default = "" if field.is_required() else f"`{value_text(name, field.get_default())}`"
        if isinstance(field.get_default(), BaseModel):
            default = "see below"
        meaning = " ".join((field.description or "").split())
        yield f"| `{name}` | {default} | {meaning} |"


def test_the_schema_is_that_of_the_models() -> None:
    assert FLEET_SCHEMA.read_text() == schema_text(), "run python -m tests.fleet.test_shipped"


def test_the_example_is_valid_by_models_and_schema() -> None:
    file = read_fleet_file(FLEET_FILE)
    assert [each.name for each in file.groups] == ["paused", "orders", "logs"]
    jsonschema.validate(read_marked(FLEET_FILE.read_text()).value, json_schema())


def test_the_example_shows_every_key() -> None:
    file = read_fleet_file(FLEET_FILE)
    given = {"name", "include", "exclude"}.union(
        *(each.model_fields_set for each in (file.defaults, *file.groups))
    )
    assert given == set(Group.model_fields)


@pytest.mark.parametrize(
    ("value", "is_valid"),
    [
        ({"version": 1}, True),
        ({"version": 1, "groups": [{"name": "g", "include": ["/t"], "on": ["commit"]}]}, True),
        ({"version": 1, "defaults": {"definitions": [{"name": "i", "columns": ["a"]}]}}, True),
        ({"version": 1, "defaults": {"poll": 5}}, False),
        ({"version": 1, "defaults": {"backfill": "newest"}}, False),
        ({"version": 1, "gruops": []}, False),
        ({"version": 1, "defaults": {"storage": {"a": {"file": "b", "env": "c"}}}}, False),
        ({"groups": []}, False),
    ],
)
def test_the_schema_finds_mistakes(value: object, is_valid: bool) -> None:
    found = list(jsonschema.Draft202012Validator(json_schema()).iter_errors(value))
    assert (not found) is is_valid


def test_the_page_has_the_keys_of_every_model() -> None:
    tables = {match["name"]: match["table"] for match in _TABLE.finditer(PAGE.read_text())}
    expected = {name: table(model) for name, model in MODELS.items()}
    assert tables == expected, "run python -m tests.fleet.test_shipped"


def test_each_field_of_a_policy_is_from_the_file_or_from_its_place() -> None:
    """A policy of a file without values has the policy's own defaults, so that both agree."""
    file = FleetFile(version=1, groups=[Group(name="g", include=["/t"])])
    made = file.policy(file.groups[0], Place("/t"), "t")
    plain = TablePolicy("t", "/t", group="g")
    for field in fields(TablePolicy):
        assert getattr(made, field.name) == getattr(plain, field.name), field.name


if __name__ == "__main__":
    FLEET_SCHEMA.write_text(schema_text())
    PAGE.write_text(
        _TABLE.sub(
            lambda match: f"<!-- keys of {match['name']} -->\n\n{table(MODELS[match['name']])}",
            PAGE.read_text(),
        )
    )
