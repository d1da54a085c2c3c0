package hudiindex.spark.source;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.util.List;
import org.junit.jupiter.api.Test;

class DecisionTest {
  @Test
  void aDecisionIsReadAsItIsWritten() {
    Decision decision =
        new Decision(Decision.TASKS, "few rows", 3, 100, List.of("a", "b"), "id = 1", "2024");
    assertEquals(decision, Decision.read(decision.json().toString()));
    assertTrue(decision.isByIndex());
    assertFalse(decision.isUndecided());
  }

  @Test
  void whatIsMissingLeavesTheRowsToSpark() {
    Decision decision = Decision.read("{}");
    assertEquals(Decision.spark(""), decision);
    assertFalse(decision.isByIndex());
  }

  @Test
  void aFailureOfPythonIsThrown() {
    SourceFailed failed =
        assertThrows(SourceFailed.class, () -> Answer.ofRelation("{\"failed\": \"no table\"}"));
    assertTrue(failed.getMessage().contains("no table"));
  }

  @Test
  void anErrorOfAStatementIsThrown() {
    String answer =
        "{\"error\": \"INDEX_NOT_FOUND\", \"message\": \"None.\", \"remedy\": \"Create it.\"}";
    StatementFailed failed = assertThrows(StatementFailed.class, () -> Answer.ofStatement(answer));
    assertEquals("INDEX_NOT_FOUND", failed.code());
    assertEquals("None.", failed.getMessage());
    assertEquals("Create it.", failed.remedy());
    assertFalse(failed.isInSyntax());
  }
}
