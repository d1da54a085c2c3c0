"""The fleet file: what it says, and what is said of its mistakes."""

from datetime import timedelta
from pathlib import Path
from textwrap import dedent

import pytest

from hudi_index_service import Column
from hudi_index_service.build.strategy import WHOLE_BACKFILL, Budget, Strategy
from hudi_index_service.errors import ConfigInvalid, FleetFileInvalid
from hudi_index_service.fleet.policies.file import FleetFile, parse_fleet_file, read_fleet_file
from hudi_index_service.fleet.policies.policy import DesiredIndex, Prewarm, TablePolicy
from hudi_index_service.fleet.policies.references import FromEnvironment, FromFile, resolved
from hudi_index_service.fleet.policies.sources import Place
from hudi_index_service.fleet.policies.windows import Window, Windows


def parsed(text: str) -> FleetFile:
    return parse_fleet_file(dedent(text).encode(), "fleet.yaml")


def mistakes(text: str) -> list[str]:
    with pytest.raises(FleetFileInvalid) as raised:
        parsed(text)
    assert all(each in raised.value.message for each in raised.value.mistakes)
    return list(raised.value.mistakes)


def policy_at(file: FleetFile, uri: str) -> TablePolicy:
    group = file.group_of(Place(uri))
    assert group is not None
    return file.policy(group, Place(uri), "t")


def test_the_first_group_that_includes_a_table_holds() -> None:
    file = parsed("""\
        version: 1
        defaults: {owner: all, labels: {team: a}, poll: 5m}
        groups:
        - {name: paused, include: [/lake/b/orders], enabled: false}
        - {name: first, include: ["/lake/*/orders"], exclude: [/lake/c/orders], poll: 10s}
        - {name: deep, include: ["/lake/**"], labels: {}}
        """)
    names = {}
    for uri in ("/lake/b/orders", "/lake/a/orders", "/lake/c/orders", "/lake/x/y/z", "/other"):
        group = file.group_of(Place(uri))
        names[uri] = group and group.name
    assert names == {
        "/lake/b/orders": "paused",
        "/lake/a/orders": "first",
        "/lake/c/orders": "deep",
        "/lake/x/y/z": "deep",
        "/other": None,
    }
    assert not policy_at(file, "/lake/b/orders").enabled
    first = policy_at(file, "/lake/a/orders")
    assert (first.owner, first.labels, first.poll) == ("all", {"team": "a"}, timedelta(seconds=10))
    assert policy_at(file, "/lake/x").labels == {}  # a key is taken whole


def test_what_is_not_stated_is_as_the_policy_has_it() -> None:
    file = parsed("version: 1\ngroups: [{name: g, include: [/t]}]")
    assert policy_at(file, "/t") == TablePolicy("t", "/t", group="g")


def test_every_key_reaches_the_policy() -> None:
    file = parsed("""\
        version: 1
        groups:
        - name: g
          include: [/t]
          enabled: false
          owner: me
          labels: {a: b}
          priority: -2
          definitions:
          - {name: i, types: [btree, lucene], columns: [a, {name: b, options: {x: "1"}}],
             options: {x: "0"}}
          apply: auto
          max_backfill_bytes: 1.5GB
          backfill: all
          strategy: refresh
          on: [commit]
          retention: instant
          poll: 90s
          windows: {time_zone: Europe/Berlin, times: [sat 22:00-24:00]}
          max_lag: 1d
          min_coverage: 0.5
          max_orphaned: 3MiB
          budget: {files: 1, bytes: 2k, minutes: 3, requests_per_second: 4.5}
          build: {timeout: 2h}
          verify: {sample: 0}
          storage: {region: here, allow_http: true, secret_access_key: {file: /s},
                    token: {env: T}}
          reads: false
          prewarm: {columns: [a, b.c], partitions: ["dt=*"]}
          on_removed: drop
        """)
    assert policy_at(file, "/t") == TablePolicy(
        "t",
        "/t",
        group="g",
        enabled=False,
        owner="me",
        labels={"a": "b"},
        priority=-2,
        definitions=(
            DesiredIndex(
                "i",
                (Column(name="a", options={"x": "0"}), Column(name="b", options={"x": "1"})),
                ("btree", "lucene"),
            ),
        ),
        apply="auto",
        max_backfill_bytes=1_500_000_000,
        backfill=WHOLE_BACKFILL,
        strategy=Strategy.REFRESH,
        on=("commit",),
        retention="instant",
        poll=timedelta(seconds=90),
        windows=Windows("Europe/Berlin", (Window(frozenset({5}), 22 * 60, 24 * 60),)),
        max_lag=timedelta(days=1),
        min_coverage=0.5,
        max_orphaned=3 * 2**20,
        budget=Budget(1, 2048, 3, 4.5),
        build_timeout=timedelta(hours=2),
        verify_sample=0,
        storage={
            "region": "here",
            "allow_http": "true",
            "secret_access_key": FromFile(Path("/s")),
            "token": FromEnvironment("T"),
        },
        reads=False,
        prewarm=Prewarm(("a", "b.c"), ("dt=*",)),
        on_removed="drop",
    )
    newest = parsed("version: 1\ngroups: [{name: g, include: [/t], backfill: newest 7 days}]")
    assert policy_at(newest, "/t").backfill == timedelta(days=7)


def test_all_mistakes_are_named_with_line_and_field() -> None:
    assert mistakes("""\
        version: 1
        defaults:
          pol: 5m
          poll: 5
          build: {timeot: 3m}
          prewarm: {colums: [a], columns: [b, B], partitions: []}
        groups:
        - name: a
          include: ["glue://sa*", data/x]
          exclud: []
          on: [clustering, comit]
          windows: {time_zone: Europe/Berln, times: ["mon-fry 22:00-06:00"]}
          storage: {x: {fle: y}}
          definitions:
          - name: by_x
            columns: [a, {name: b, optons: {a: b}}]
          - name: by_x
            columns: [c]
          - name: write_config
            columns: [c]
        - name: a
          enabled: 22:00
          backfill: newest 0 days
        """) == [
        "line 3: defaults.pol: unknown key. Did you mean poll?",
        "line 4: defaults.poll: a duration is a number and a unit, such as 30s, 5m, 2h or 7d",
        "line 5: defaults.build.timeot: unknown key. Did you mean timeout?",
        "line 6: defaults.prewarm.colums: unknown key. Did you mean columns?",
        "line 6: defaults.prewarm.columns: a column is named twice",
        "line 6: defaults.prewarm.partitions: List should have at least 1 item after validation, "
        "not 0",
        "line 9: groups[0].include: 'glue://sa*' names no database: write glue://database or "
        "hive://host:9083/database, and after a dot a pattern for tables",
        "line 10: groups[0].exclud: unknown key. Did you mean exclude?",
        "line 11: groups[0].on[1]: Input should be 'clustering', 'compaction' or 'commit'",
        "line 12: groups[0].windows.time_zone: There is no time zone 'Europe/Berln'. Did you mean "
        "Europe/Berlin? Use a name of the IANA's database, such as Europe/Berlin",
        "line 12: groups[0].windows.times: 'fry' is no day of the week: mon, tue, wed, thu, fri, "
        "sat, sun",
        "line 13: groups[0].storage.x: a value is a text, {file: PATH} or {env: NAME}",
        "line 16: groups[0].definitions[0].columns[1].optons: unknown key. Did you mean options?",
        "line 17: groups[0].definitions[1].name: there is another definition by_x",
        "line 19: groups[0].definitions[2].name: write_config is the index of the keys "
        "hoodie.index.* of writers",
        "line 21: groups[1].include: it is missing",
        "line 21: groups[1].name: there is another group a",
        "line 22: groups[1].enabled: Input should be a valid boolean, unable to interpret input",
        "line 23: groups[1].backfill: write none, all, or newest N days",
    ]


@pytest.mark.parametrize(
    ("text", "mistake"),
    [
        ("", "line 1: the file begins with version: 1, and has groups"),
        ("- 1", "line 1: the file begins with version: 1, and has groups"),
        ("groups: []", "line 1: version: it is missing"),
        ("version: 2", "line 1: version: Input should be 1"),
        ("version: 1\ngroups: [", "not YAML: expected the node content"),
        ("version: 1\ngroups: *x", "line 2: not YAML: found undefined alias 'x'"),
        ("version: 1\nversion: 1", "line 2: version: version is there twice, first on line 1"),
        ("version: 1\ngroups: &x [*x]", "line 2: groups[0]: the alias is in what it stands for"),
        ("version: 1\ngroups: !!set {a}", "line 2: groups: Input should be a valid list"),
        ("version: !!python/name:os.system 1", "line 1: version: the tag"),
        ("version: 1\nowner: \x01", "line 2: not YAML: unacceptable character"),
        ("version: 1\ngroups: [1]", "line 2: groups[0]: write keys with values"),
        ("groups: " + "[" * 1000, "line 1: not YAML: it is nested too deeply"),
    ],
)
def test_what_is_no_fleet_file_is_refused(text: str, mistake: str) -> None:
    assert any(mistake in each for each in mistakes(text)), mistakes(text)


def test_a_file_that_cannot_be_read_is_refused(tmp_path: Path) -> None:
    with pytest.raises(FleetFileInvalid, match="cannot be read: No such file"):
        read_fleet_file(tmp_path / "none.yaml")
    (tmp_path / "latin").write_bytes(b"version: 1 # \xe4")
    with pytest.raises(FleetFileInvalid, match="not UTF-8"):
        read_fleet_file(tmp_path / "latin")


@pytest.mark.parametrize(
    "option", ["secret_access_key", "AWS_SESSION_TOKEN", "account_key", "sas_token", "password"]
)
def test_a_secret_in_the_file_is_a_mistake_that_does_not_repeat_it(option: str) -> None:
    (mistake,) = mistakes(f"version: 1\ndefaults:\n  storage:\n    {option}: CANARY\n")
    assert mistake.startswith(f"line 4: defaults.storage.{option}: a secret is not in the file")
    assert "CANARY" not in mistake


def test_references_are_read_anew(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "key"
    file.write_text("first\n")
    monkeypatch.setenv("FLEET_TEST_ID", "id")
    options = {"a": FromFile(file), "b": FromEnvironment("FLEET_TEST_ID"), "c": "plain"}
    assert resolved(options) == {"a": "first", "b": "id", "c": "plain"}
    file.write_text("second\n")
    assert resolved(options)["a"] == "second"
    file.unlink()
    with pytest.raises(ConfigInvalid, match="option a is in the file"):
        resolved(options)
    with pytest.raises(ConfigInvalid, match="FLEET_TEST_NONE, which is not set"):
        resolved({"b": FromEnvironment("FLEET_TEST_NONE")})
    file.write_bytes(b"\xffCANARY")
    with pytest.raises(ConfigInvalid) as raised:
        resolved(options)
    assert "CANARY" not in str(raised.value)


def test_builds_by_spark_have_a_size_and_a_command_without_secrets() -> None:
    text = (
        "version: 1\ngroups: [{name: g, include: [/t], build: {spark: {above: 1GiB, submit: %s}}}]"
    )
    policy = policy_at(parsed(text % "[spark-submit, --master, yarn]"), "/t")
    assert (policy.spark_above, policy.spark_submit) == (
        2**30,
        ("spark-submit", "--master", "yarn"),
    )
    with pytest.raises(FleetFileInvalid, match="secret is not in a command") as raised:
        parsed(text % "[spark-submit, --conf, spark.hadoop.fs.s3a.secret.key=canary]")
    assert "canary" not in str(raised.value)
    with pytest.raises(FleetFileInvalid):
        parsed(text % "[]")
