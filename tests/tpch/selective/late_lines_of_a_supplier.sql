SELECT l_orderkey, l_linenumber
FROM lineitem
WHERE l_suppkey = 77 AND l_shipmode = 'MAIL' AND l_receiptdate > l_commitdate
UNION ALL
SELECT l_orderkey, l_linenumber
FROM lineitem
WHERE l_suppkey = 77 AND l_quantity = 50 AND l_returnflag IN ('R', 'A')
ORDER BY l_orderkey, l_linenumber
