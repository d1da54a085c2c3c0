SELECT o_orderdate, o_totalprice, l_linenumber, l_quantity, l_extendedprice, p_name
FROM orders
JOIN lineitem ON o_orderkey = l_orderkey
LEFT JOIN part ON l_partkey = p_partkey
WHERE o_orderkey = 7 AND l_orderkey = 7
ORDER BY l_linenumber
