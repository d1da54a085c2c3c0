/** Queries of a Spark session that read Hudi tables through an index, where that is cheaper. */
package hudiindex.spark;
