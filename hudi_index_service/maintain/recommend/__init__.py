"""Which index, or which writer setting, would pay: by the queries that a table really had, or, of a
table without queries, by a sample of its rows. Changes nothing."""
