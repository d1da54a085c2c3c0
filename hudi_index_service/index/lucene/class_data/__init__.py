"""Class-data sharing: an archive of Lucene's Java classes, by which a JVM starts faster."""
