SELECT * FROM lineitem WHERE l_orderkey = 32 ORDER BY l_linenumber
