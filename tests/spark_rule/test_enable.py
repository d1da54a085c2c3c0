"""The rule is put on sessions that run, and on those that name it in their settings."""

import re
import sys

import pytest

from hudi_index_service.errors import ConfigInvalid, NativeModuleMissing, SparkUnsupported
from hudi_index_service.sql import enable, last_queries
from tests.spark_rule.programs import run_program

_QUERY = "SELECT msg FROM rule_cow WHERE id = '3'"


@pytest.mark.fast
def test_enabling_again_changes_nothing(enabled, tables):
    before = enabled.sql(_QUERY)._jdf.queryExecution().optimizedPlan().toString()
    enable(enabled)
    enable(enabled)
    after = enabled.sql(_QUERY)._jdf.queryExecution().optimizedPlan().toString()
    assert after.count("Indexed") == before.count("Indexed") == 1


def test_new_sessions_take_part_and_may_opt_out(enabled, tables):
    new = enabled.newSession()
    assert new.sql(_QUERY).collect() == enabled.sql(_QUERY).collect()
    assert last_queries(new)[-1][0].by_index
    new.conf.set("spark.hudi.index.enabled", "false")
    assert "HudiIndexScan" not in new.sql(_QUERY)._jdf.queryExecution().toString()
    assert "HudiIndexScan" in enabled.sql(_QUERY)._jdf.queryExecution().toString()
    new.conf.unset("spark.hudi.index.enabled")
    assert "HudiIndexScan" in new.sql(_QUERY)._jdf.queryExecution().toString()


@pytest.mark.fast
def test_missing_jar_is_named_with_a_remedy(enabled, monkeypatch):
    monkeypatch.setitem(sys.modules, "hudi_index_spark", None)
    with pytest.raises(NativeModuleMissing, match=r"NATIVE_MODULE_MISSING: .*pip install"):
        enable(enabled)


def test_session_of_another_spark_is_refused(enabled, monkeypatch):
    monkeypatch.setattr(type(enabled), "version", "4.0.5")
    with pytest.raises(SparkUnsupported, match=r"SPARK_UNSUPPORTED: .*4\.0\.5.*3\.5.*to_spark"):
        enable(enabled)


def test_session_of_another_scala_is_refused(enabled, monkeypatch):
    import hudi_index_spark

    monkeypatch.setattr(hudi_index_spark, "SCALA", ("2.11", "3.3"))
    with pytest.raises(SparkUnsupported, match=r"SPARK_UNSUPPORTED: .*2\.11 and 3\.3.*to_spark"):
        enable(enabled)


def test_jar_for_another_scala_is_named(tables, tmp_path):
    """A session that starts with it warns once, and Spark reads."""
    program = """
    import hudi_index_spark
    from hudi_index_service.errors import SparkUnsupported
    os.dup2(1, 2)
    own = hudi_index_spark.scala_of_spark()
    [other] = {*hudi_index_spark.SCALA} - {own}
    both = HUDI_SETTINGS["spark.sql.extensions"] + "," + hudi_index_spark.EXTENSIONS
    jar = hudi_index_spark.jar_path(other)
    spark = session(jars=[jar], **{"spark.sql.extensions": both})
    for each in (spark, spark.newSession()):
        print("rows", table(each).where("id = '3'").count())
    try:
        enable(spark)
    except SparkUnsupported as error:
        print(str(error).replace(own, "OWN").replace(other, "OTHER"))
    print("rows", table(spark).where("id = '3'").count())
    """
    lines = run_program(program, tables.folder, tmp_path)
    refusal = (
        "The session is of Spark 3.5 with Scala OWN, and hudi-index-spark3.5_OTHER.jar for Spark "
        "3.5 with Scala OTHER. Use hudi-index-spark3.5_OWN.jar, of the same distribution."
    )
    assert [each for each in lines if each.startswith(("rows", "SPARK"))] == [
        *["rows 1"] * 2,
        f"SPARK_UNSUPPORTED: {refusal}",
        "rows 1",
    ]
    [warning] = [each for each in lines if "Spark scans" in each]
    assert "SPARK_UNSUPPORTED: Spark scans: The session is of Spark 3.5 with Scala " in warning


def test_what_is_no_session_is_refused():
    with pytest.raises(ConfigInvalid, match="spark is object, not a Spark session"):
        enable(object())  # type: ignore[arg-type]


def test_enable_readies_what_the_first_query_needs(tables, tmp_path):
    """The time for a decision counts from there. A running session keeps its parser, and knows the
    hint, too: Spark has nothing to warn of. Once its calls are not answered any more, Spark reads,
    soon, until it is enabled again."""
    program = """
    import sys, time
    os.dup2(1, 2)
    spark = session()
    hinted = "SELECT {} id FROM t WHERE id = '3'"
    table(spark).createOrReplaceTempView("t")
    spark.sql(hinted.format("")).collect()
    enable(spark)
    import lucene
    print(lucene.getVMEnv() is not None)
    before = set(sys.modules)
    print(len(table(spark).where("id = '3'").collect()), uses(spark)[0].by_index)
    print(sorted(name for name in set(sys.modules) - before if "hudi" in name or "lucene" in name))
    try:
        spark.sql("SHOW INDEXING rules")
    except Exception as error:
        print(type(error).__name__, error.getErrorClass())
    started = time.monotonic()
    spark.sparkContext._gateway.shutdown_callback_server()
    print(len(table(spark).where("id = '4'").collect()), uses(spark)[0].by_index)
    print(time.monotonic() - started < 30)
    enable(spark)
    print(len(table(spark).where("id = '5'").collect()), uses(spark)[0].by_index)
    spark.sparkContext.setLogLevel("WARN")
    for hint in ("", "/*+ NO_INDEX */", "/*+ NO_INDEX(t) */", "/*+ NO_INDEX(u) */"):
        enable(spark)
        print("rows", spark.sql(hinted.format(hint)).collect()[0].id, uses(spark)[0].by_index)
    spark.stop()
    """
    lines = run_program(program, tables.folder, tmp_path)
    running = ["True", "1 True", "[]", "ParseException PARSE_SYNTAX_ERROR"]
    expected = [*running, "1 False", "True", "1 True"]
    expected += ["rows 3 True", "rows 3 False", "rows 3 False", "rows 3 True"]
    assert [each for each in lines if each in expected] == expected
    [warning] = [each for each in lines if "hint" in each.lower()]
    assert "'u'" in warning


def test_nothing_is_left_of_a_context_that_was_stopped(tables, tmp_path):
    """Of one that names the extension in its settings, and of one that does not."""
    program = """
    import hudi_index_spark, sys
    module = sys.modules["hudi_index_service.sql.rule.enable"]
    both = HUDI_SETTINGS["spark.sql.extensions"] + "," + hudi_index_spark.EXTENSIONS
    jar = hudi_index_spark.jar_path()

    def kept(spark):
        kind = spark._jsparkSession.sharedState().jarClassLoader().loadClass(module._CLASS)
        sizes = []
        for name in ("BY_SESSION", "BY_CONTEXT"):
            field = kind.getDeclaredField(name)
            field.setAccessible(True)
            sizes.append(field.get(None).size())
        return sizes

    named = {"spark.sql.extensions": both, "spark.driver.extraClassPath": jar}
    for settings in (named, named, {}):
        spark = session(**settings)
        few = table(spark).where("id = '3'")
        print("HudiIndexScan" in few._jdf.queryExecution().toString(), last_queries(spark))
        try:
            spark.sql("SHOW INDEXING rules")
        except Exception as error:
            print(error.getErrorClass())
        enable(spark)
        enable(spark)
        enable(spark.newSession(), storage_options={"aws_region": "x"})
        print(table(spark).where("id = '3'").count(), uses(spark)[0].by_index, kept(spark))
        [readers] = module._readers.values()
        print([len(each._tables) for each in readers])
        spark.stop()
        print(kept(spark))
    """
    lines = run_program(program, tables.folder, tmp_path)
    answered = ["1 True [2, 1]", "[1, 0]", "[0, 0]"]
    named = ["False []", "INDEX_NOT_ENABLED", *answered]
    assert lines == [*named, *named, "False []", "PARSE_SYNTAX_ERROR", *answered]


def test_jar_reaches_executors_of_a_cluster(tables, tmp_path):
    program = """
    spark = session("local-cluster[1,2,1024]")
    enable(spark)
    few = table(spark).where("amount < 30")
    print(few.groupBy("msg").count().count(), few.join(few, "id").count(), uses(spark)[0].by_index)
    # Tasks of nodes above get the plan along with them.
    print(sorted(r[0] for r in few.selectExpr("id", "rand() AS x").where("x < 2").rdd
                 .map(lambda row: row.id).collect()), uses(spark)[0].by_index)
    from hudi_index_service.config import settings
    from hudi_index_service.optimizer.cost.constants import Constants
    from tests.cost_constants import set_constants
    set_constants(settings(), Constants(spark_scan_ms=1e12, handing_ms=1e9))
    many = table(spark).where("amount < 90").repartition(3)
    print(many.count(), uses(spark)[0].in_tasks, uses(spark)[0].reason)
    """
    lines = run_program(program, tables.folder, tmp_path)
    assert lines[0] == "8 10 True"
    assert lines[1] == f"{sorted(map(str, range(10)))} True"
    assert lines[2].startswith("30 True ")


def test_versions_of_a_session_that_were_not_tested_are_named_once(tables, tmp_path):
    program = """
    import logging, sys
    from hudi_index_service import open_table, spark_session, tested
    logging.basicConfig(stream=sys.stdout, format="%(message)s")
    # As if another release of Hudi had been tested.
    spark_session.WITH_SPARK = ({**tested.WITH_SPARK[0], "Scala": ("2",), "Hudi": ("0.14",)},)
    spark = session()
    for _ in range(2):
        enable(spark)
        open_table(FOLDER + "/rule_cow", spark=spark).close()
    """
    lines = run_program(program, tables.folder, tmp_path)
    [named] = [each for each in lines if "Hudi" in each and "COMBINATION_UNTESTED" in each]
    assert re.search(
        r"Not tested: Hudi 1\.\d\.\d \(tested: 0\.14\), together with Spark 3\.5", named
    )
