SELECT o_orderkey, o_custkey
FROM orders
WHERE o_custkey IN (370, 781, 1234)
  AND NOT EXISTS (
    SELECT * FROM lineitem WHERE l_orderkey = o_orderkey AND l_shipdate >= DATE '1996-01-01'
  )
ORDER BY o_orderkey
