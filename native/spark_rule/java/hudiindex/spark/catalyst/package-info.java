/** Everything that knows Catalyst: which parts of a plan an index can read, and how they run. */
package hudiindex.spark.catalyst;
