"""OPTIMIZE TABLE … WHERE: a condition on partition columns picks the partitions to build."""

import pytest

from hudi_index_service import open_table
from hudi_index_service.errors import (
    ColumnNotFound,
    PredicateInvalid,
    PredicateUnsupported,
    StatementInvalid,
)
from hudi_index_service.sql.statements import parse_statement
from tests.hudi_tables import NO_METADATA_TABLE, hudi_options, write


@pytest.mark.parametrize(
    ("after", "where", "rest"),
    [
        ("WHERE dt = 'a'", "dt = 'a'", "incremental"),
        ("WHERE dt = 'a' STRATEGY ALL", "dt = 'a'", "all"),
        ("where dt in ('a', 'STRATEGY ALL') DRY RUN ;", "dt in ('a', 'STRATEGY ALL')", "dry"),
        ("WHERE strategy = 'ALL' AND dry > 1", "strategy = 'ALL' AND dry > 1", "incremental"),
        ("WHERE (a -- STRATEGY ALL\n) STRATEGY ALL", "(a -- STRATEGY ALL\n)", "all"),
        ("WHERE `dry` run DRY RUN", "`dry` run", "dry"),
        ("WHERE dt = '😀 馬' DRY RUN", "dt = '😀 馬'", "dry"),
    ],
)
def test_end_of_the_predicate(after, where, rest):
    query = f"OPTIMIZE TABLE t\n {after}"
    statement = parse_statement(query)
    assert statement.where.strip() == where
    assert query.startswith(statement.where.strip(), len(statement.where) - len(where))
    assert ("dry" if statement.dry_run else statement.strategy.value) == rest


def due(session, table, where):
    """The partitions of the base files that a build would index."""
    rows = session.sql(f"OPTIMIZE TABLE {table} WHERE {where} STRATEGY ALL DRY RUN").collect()
    assert all(row.index_bytes > 0 and row.seconds >= 0 for row in rows)  # estimates
    return sorted(row.base_file.rpartition("/")[0] for row in rows)


def test_only_matching_partitions_are_built(session, messages):
    table = f"`spark_catalog`.default.`{messages.name}`"
    session.sql(f"CREATE INDEX by_id ON {table} USING lucene (id)")
    assert due(session, table, "dt < '2026-01-02'") == ["2026-01-01"]
    assert due(session, f"'{messages}'", "DT LIKE '2026-01-%' AND NOT dt <=> NULL") == [
        "2026-01-01",
        "2026-01-02",
    ]
    assert due(session, table, "dt IN ('nowhere', NULL)") == []
    assert due(session, table, "true AND dt IS NOT NULL") == ["2026-01-01", "2026-01-02"]

    built = session.sql(f"OPTIMIZE TABLE hudi.`{messages}` WHERE dt = '2026-01-02' STRATEGY ALL")

    assert [row.base_file.split("/")[0] for row in built.collect()] == ["2026-01-02"]
    (status,) = session.sql(f"SHOW INDEXING {table}").collect()
    assert [(each.partition, each.covered) for each in status.partitions] == [
        ("2026-01-01", 0),
        ("2026-01-02", 1),
    ]


@pytest.mark.parametrize(
    ("where", "error", "message"),
    [
        ("dt = 'a' AND\n amount > 1", PredicateInvalid, "Partition column expected at line 3, col"),
        (
            "`Amount` > 1",
            PredicateInvalid,
            "Partition column expected at line 2, column 7 of the s",
        ),
        ("day > 1", ColumnNotFound, "The table has no column 'day' (line 2, column 7 of the state"),
        ("dt = 'a' OR", PredicateInvalid, "found its end at line 2, column 18 of the statement"),
        ("dt = 'a' STRATEGY", PredicateInvalid, "found 'STRATEGY' at line 2, column 16 of the st"),
        ("upper(dt) = 'A'", PredicateUnsupported, "'upper' at line 2, column 7 of the statement"),
        ("", StatementInvalid, "Predicate over partition columns expected at line 2, column 6"),
    ],
)
def test_errors_in_the_predicate_have_a_position(session, messages, where, error, message):
    with pytest.raises(error) as raised:
        session.sql(f"OPTIMIZE TABLE {messages.name}\nWHERE {where}")
    assert message in raised.value.message


def test_partition_values_of_several_types(session, spark, tmp_path):
    path = tmp_path / "table"
    options = hudi_options(
        "parts",
        partition_column="region,day,open",
        ordering_column=None,
        **{"hoodie.datasource.write.hive_style_partitioning": "true", **NO_METADATA_TABLE},
    )
    rows = spark.sql(
        "SELECT * FROM VALUES ('1', 'eu', DATE'2026-01-01', true), ('2', 'us', NULL, true), "
        "('3', NULL, DATE'2026-01-02', false), ('4', 'a b/c', DATE'2026-01-03', true) "
        "AS t(id, region, day, open) WHERE id != '4'"
    )
    write(rows, path, options, "insert")
    eu, us, none = (
        "region=eu/day=2026-01-01/open=true",
        "region=us/day=__HIVE_DEFAULT_PARTITION__/open=true",
        "region=__HIVE_DEFAULT_PARTITION__/day=2026-01-02/open=false",
    )
    with open_table(path) as table:
        assert table.partitions() == (none, eu, us)
        assert table.partitions("day < DATE'2026-01-02'") == (eu,)
        assert table.partitions("day IS NULL") == (us,)
        assert table.partitions("region <> 'eu' AND day IS NULL OR region IS NULL") == (none, us)
        # Rows with NULL and with an empty string are in the same partition, whose value is NULL.
        assert table.partitions("region = ''") == ()
        assert table.partitions("open") == (eu, us)


def test_where_on_a_table_without_partitions(session, golden_index):
    path = golden_index("two_hundred_rows")
    with pytest.raises(PredicateInvalid, match="the table is not partitioned"):
        session.sql(f"OPTIMIZE TABLE '{path}' WHERE id = '1'")
    with open_table(path) as table:
        assert table.partitions() == ("",)
        assert table.partitions("true") == ("",)
        assert table.partitions("false") == ()
