/** Index statements in the SQL texts of a Spark session. */
package hudiindex.spark.statements;
