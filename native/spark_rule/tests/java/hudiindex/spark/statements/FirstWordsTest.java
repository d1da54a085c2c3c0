package hudiindex.spark.statements;

import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertTrue;

import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

class FirstWordsTest {
  @ParameterizedTest
  @ValueSource(
      strings = {
        "OPTIMIZE TABLE t",
        "optimize table t",
        "  \t\r\n ALTER\nINDEX i",
        "EXPLAIN ANALYZE INDEX SELECT 1",
        "-- a comment\nSHOW INDEXING",
        "-- one that goes on \\\n here\nSHOW INDEXING",
        "/* a /* nested */ one */ CANCEL /**/ INDEXING",
        "EXPLAIN-- no blank before\nINDEX SELECT 1",
      })
  void aTextThatBeginsLikeNoStatementOfOthersIsOnlyOurs(String text) {
    assertTrue(FirstWords.areOnlyOurs(text));
    assertTrue(FirstWords.mayBeOurs(text));
  }

  @ParameterizedTest
  @ValueSource(
      strings = {"CREATE INDEX i ON t", "drop index i", "SHOW INDEXES ON t", "REFRESH INDEX i"})
  void aTextThatHudiReadsTooMayBeOurs(String text) {
    assertTrue(FirstWords.mayBeOurs(text));
    assertFalse(FirstWords.areOnlyOurs(text));
  }

  @ParameterizedTest
  @ValueSource(
      strings = {
        "",
        "   ",
        "SELECT 1",
        "CREATE TABLE INDEX (a INT)",
        "CREATE",
        "`CREATE` INDEX i",
        "EXPLAIN ANALYZE SELECT 1",
        "-- CREATE INDEX i",
        "/* OPTIMIZE TABLE t */ SELECT 1",
        "/* never closed OPTIMIZE TABLE t",
        "/*+ hint */ OPTIMIZE TABLE t",
        "(OPTIMIZE TABLE t)",
        "OPTIMIZE_TABLE t",
      })
  void allOtherTextsAreLeftToSpark(String text) {
    assertFalse(FirstWords.mayBeOurs(text));
    assertFalse(FirstWords.areOnlyOurs(text));
  }

  @ParameterizedTest
  @ValueSource(strings = {"OPTIMIZE t", "optimize /* it */ t ZORDER BY (a)"})
  void othersOptimizeIsAlmostOurs(String text) {
    assertTrue(FirstWords.areAlmostOurs(text));
    assertFalse(FirstWords.mayBeOurs(text));
  }
}
