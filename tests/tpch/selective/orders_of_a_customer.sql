SELECT o_orderkey, o_orderdate, count(*) AS parts, sum(l_extendedprice * (1 - l_discount)) AS price
FROM customer, orders, lineitem
WHERE c_custkey = o_custkey AND o_orderkey = l_orderkey AND o_custkey = 370
GROUP BY o_orderkey, o_orderdate
ORDER BY o_orderdate, o_orderkey
