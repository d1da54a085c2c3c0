/** Who knows the index, and how to ask: texts and bytes, deadlines, and what is known already. */
package hudiindex.spark.source;
