/** Full-text functions in queries: their names, and what a call means where it stands. */
package hudiindex.spark.fulltext;
