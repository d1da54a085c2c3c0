"""Statements other than ours reach Spark unchanged."""

import re
from collections.abc import Iterator

import pytest
from pyspark.errors import AnalysisException, ParseException

from hudi_index_service.errors import IndexNotFound, StatementFailed, StatementInvalid
from tests.hudi_tables import IN_PROCESS_LOCK

pytestmark = pytest.mark.fast


@pytest.fixture
def view(session, messages) -> Iterator[str]:
    """The table as a temporary view, so that queries have a constant text."""
    session.spark.table(messages.name).createTempView("queried")
    yield "queried"
    session.spark.catalog.dropTempView("queried")


@pytest.mark.usefixtures("view")
def test_query_is_passed_through(session):
    query = " SELECT id /* key */ FROM queried WHERE msg = 'Buying car 3' ORDER BY id; "
    assert [row.id for row in session.sql(query).collect()] == ["10", "17", "3"]


@pytest.mark.usefixtures("view")
def test_parameters_are_passed_through(session):
    named = "SELECT count(*) AS n FROM queried WHERE amount < :most"
    assert session.sql(named, args={"most": 9}).first().n == 3
    assert session.sql(named.replace(":most", "?"), args=[9]).first().n == 3
    table = session.spark.table("queried")
    assert session.sql("SELECT max(amount) AS n FROM {t}", t=table).first().n == 57


def test_other_statements_are_passed_through(session, messages):
    assert messages.name in [row.tableName for row in session.sql("SHOW TABLES").collect()]
    assert [row.col_name for row in session.sql(f"DESCRIBE {messages.name}").collect()][5] == "id"


def test_errors_of_spark_are_raised(session):
    with pytest.raises(ParseException):
        session.sql("SELEC 1")
    with pytest.raises(AnalysisException, match="TABLE_OR_VIEW_NOT_FOUND"):
        session.sql("SELECT * FROM nowhere")
    with pytest.raises(AnalysisException, match="TABLE_OR_VIEW_NOT_FOUND"):
        session.sql("SHOW INDEXES FROM nowhere")
    with pytest.raises(AnalysisException, match="TABLE_OR_VIEW_NOT_FOUND"):
        session.sql("DROP INDEX i ON nowhere")


@pytest.fixture
def second_hudi_writer(session) -> Iterator[None]:
    """Hudi settings with which it builds its indexes: as a second writer, which needs a lock."""
    settings = {
        **IN_PROCESS_LOCK,
        "hoodie.write.concurrency.mode": "optimistic_concurrency_control",
        # Otherwise ten files for twenty rows; the second key is the older name.
        "hoodie.metadata.global.record.level.index.min.filegroup.count": "1",
        "hoodie.metadata.record.index.min.filegroup.count": "1",
        "hoodie.metadata.index.column.stats.enable": "false",
    }
    for key, value in settings.items():
        session.spark.conf.set(key, value)
    yield
    for key in settings:
        session.spark.conf.unset(key)


@pytest.fixture
def documented_table(session, tmp_path) -> Iterator[str]:
    """The table of Hudi's page "SQL DDL", created and filled as there."""
    session.sql(
        f"""
        CREATE TABLE hudi_indexed_table (
            ts BIGINT, uuid STRING, rider STRING, driver STRING, fare DOUBLE, city STRING
        ) USING HUDI
        options(primaryKey ='uuid', hoodie.write.record.merge.mode = "COMMIT_TIME_ORDERING")
        PARTITIONED BY (city)
        LOCATION '{tmp_path / "hudi_indexed_table"}'
        """
    )
    session.sql(
        """
        INSERT INTO hudi_indexed_table VALUES
        (1695159649, '334e26e9', 'rider-A', 'driver-S', 19.10, 'san_francisco'),
        (1695091554, 'e96c4396', 'rider-E', 'driver-T', 27.70, 'san_francisco')
        """
    )
    yield "hudi_indexed_table"
    session.sql("DROP TABLE hudi_indexed_table")


# Hudi's page "SQL DDL", sections "Create Index" and "Create Expression Index".
CREATED = {
    "CREATE INDEX idx_bloom_driver ON hudi_indexed_table USING bloom_filters(driver) "
    "OPTIONS(expr='identity');": ("expr_index_idx_bloom_driver", "bloom_filters", "driver"),
    "CREATE INDEX IF NOT EXISTS ts_datestr ON hudi_indexed_table\n  USING column_stats(ts)\n  "
    "OPTIONS(expr='from_unixtime', format = 'yyyy-MM-dd');": (
        *("expr_index_ts_datestr", "column_stats", "ts"),
    ),
    "CREATE INDEX record_index ON hudi_indexed_table (uuid)": ("record_index", "record_index", ""),
    "CREATE INDEX idx_rider ON hudi_indexed_table (rider)": (
        *("secondary_index_idx_rider", "secondary_index", "rider"),
    ),
}


@pytest.mark.slow
@pytest.mark.usefixtures("second_hudi_writer")
def test_hudis_documented_index_sql(session, documented_table):
    bare = session.spark
    session.sql(f"CREATE INDEX by_rider ON {documented_table} USING lucene (rider)")

    def shown(by):
        rows = by.sql(f"SHOW INDEXES FROM {documented_table}").collect()
        return {tuple(row)[:3] for row in rows} - {("by_rider", "lucene", "rider")}

    present = shown(bare)
    for statement, row in CREATED.items():
        done = session.sql(statement)
        assert (done.columns, done.collect()) == ([], [])
        present |= {row}
        assert shown(session) == shown(bare) == present
    by_path = session.sql(
        f"SHOW INDEXES IN TABLE spark_catalog.default.{documented_table}"
    ).collect()
    assert {tuple(row)[:3] for row in by_path if row.managed_by == "hudi"} == present
    assert {row.index_name: row.options for row in by_path if row.options} == {
        "expr_index_idx_bloom_driver": {"driver": {"expr": "identity"}},
        "expr_index_ts_datestr": {"ts": {"expr": "from_unixtime", "format": "yyyy-MM-dd"}},
    }
    found = session.sql("SELECT uuid FROM hudi_indexed_table WHERE rider = 'rider-E'").collect()
    assert [row.uuid for row in found] == ["e96c4396"]

    for name in ("idx_rider", "secondary_index_idx_rider", "record_index"):
        assert session.sql(f"REFRESH INDEX {name} ON {documented_table}").columns == []
    session.sql(f"DROP INDEX idx_rider ON {documented_table}")
    session.sql(f"DROP INDEX IF EXISTS expr_index_idx_bloom_driver ON TABLE {documented_table}")

    gone = ("secondary_index_idx_rider", "expr_index_idx_bloom_driver")
    assert shown(session) == shown(bare) == {row for row in present if row[0] not in gone}
    ours = [
        row.index_name for row in session.sql(f"SHOW INDEXES FROM {documented_table}").collect()
    ]
    assert ours[0] == "by_rider"


def test_unknown_indexes(session, messages):
    session.sql(f"CREATE INDEX by_msg ON {messages.name} USING lucene (msg)")
    for statement in (
        f"DROP INDEX other ON {messages.name}",
        f"REFRESH INDEX other ON {messages.name}",
        f"ALTER INDEX other ON {messages.name} ADD (id)",
        f"REFRESH INDEX other ON '{messages.path}'",
    ):
        with pytest.raises(IndexNotFound) as raised:
            session.sql(statement)
        assert "no index named other" in raised.value.message
        assert raised.value.remedy.startswith("SHOW INDEXES FROM ")
    assert session.sql(f"DROP INDEX IF EXISTS other ON {messages.name}").columns == []


@pytest.mark.parametrize("columns", ["(msg, id)", "USING record_index (msg)"])
def test_error_of_hudi_is_shortened_to_one_line(session, messages, columns):
    with pytest.raises(StatementFailed) as raised:
        session.sql(f"CREATE INDEX other ON {messages.name} {columns}")
    assert raised.value.message.startswith("Hudi creates no such index: ")
    assert "\n" not in raised.value.message
    assert "USING lucene" in raised.value.remedy


@pytest.mark.parametrize("query", ["SELECT id FROM {t}", "EXPLAIN INDEX SELECT id FROM {t}"])
def test_table_by_path_in_a_query_is_refused_with_a_remedy(session, messages, query):
    """Spark accepts paths only for its own formats, here as in ``spark.sql``."""
    table = f"hudi.`{messages.path}`"
    with pytest.raises(AnalysisException, match="UNSUPPORTED_DATASOURCE_FOR_DIRECT_QUERY"):
        session.spark.sql(query.format(t=table).removeprefix("EXPLAIN INDEX "))
    with pytest.raises(StatementInvalid, match="a Hudi table by its path") as raised:
        session.sql(query.format(t=table))
    named = re.search(r"CREATE TEMPORARY VIEW t .*?\)", raised.value.remedy).group()
    session.sql(named)
    assert session.sql("SELECT id FROM t").count() == 20
    session.spark.catalog.dropTempView("t")
