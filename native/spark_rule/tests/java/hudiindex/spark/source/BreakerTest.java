package hudiindex.spark.source;

import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertTrue;

import org.junit.jupiter.api.Test;

class BreakerTest {
  private static final long PAUSE = 100;

  private long now = Long.MAX_VALUE - 50; // nanoseconds overflow in between

  private final Breaker breaker = new Breaker(2, PAUSE, () -> now);

  @Test
  void callsGoOnAfterOneFailure() {
    assertFalse(breaker.failed(false));
    assertTrue(breaker.allowsCall());
  }

  @Test
  void callsStopAfterSeveralFailuresInARow() {
    breaker.failed(false);
    breaker.succeeded();
    assertFalse(breaker.failed(false));
    assertTrue(breaker.failed(false));
    assertFalse(breaker.allowsCall());
  }

  @Test
  void afterEachPauseOneCallIsTried() {
    breaker.failed(true);
    now += PAUSE;
    assertTrue(breaker.allowsCall());
    assertFalse(breaker.allowsCall());
    now += PAUSE;
    assertTrue(breaker.allowsCall());
    breaker.succeeded();
    assertTrue(breaker.allowsCall());
    assertTrue(breaker.allowsCall());
  }

  @Test
  void aFailureThatLastsStopsCallsAtOnceAndIsSaidOnce() {
    assertTrue(breaker.failed(true));
    assertFalse(breaker.failed(true));
    assertFalse(breaker.allowsCall());
  }
}
