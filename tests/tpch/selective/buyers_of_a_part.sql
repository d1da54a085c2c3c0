WITH bought AS (
  SELECT l_orderkey, l_quantity FROM lineitem WHERE l_partkey = 1552 AND l_shipmode <> 'RAIL'
)
SELECT c_name, sum(l_quantity) AS quantity
FROM bought, orders, customer
WHERE l_orderkey = o_orderkey AND o_custkey = c_custkey
GROUP BY c_name
ORDER BY quantity DESC, c_name
