"""How the tests' own Java processes run: Spark, HBase and their tools."""

VARIABLE = "JDK_JAVA_OPTIONS"
"""The environment variable whose options the ``java`` command puts before its own."""

BRIEF = (
    "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC -XX:ReservedCodeCacheSize=240m -XX:MaxRAMPercentage=6"
)
"""For many small jobs: without the second compiler and parallel collectors, writing small tables
takes a third less processor time. Java would then reserve 48 MB for compiled code, which a session
fills within minutes; from then on it throws code away, and compiles it anew. And a heap may grow to
a quarter of the memory, which HBase uses: several sessions have to live beside it."""
