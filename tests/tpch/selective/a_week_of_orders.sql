SELECT o_orderpriority, count(*) AS orders, max(o_totalprice) AS dearest
FROM orders
WHERE o_orderdate BETWEEN DATE '1993-08-02' AND DATE '1993-08-08'
  AND o_orderstatus = 'F'
GROUP BY o_orderpriority
ORDER BY o_orderpriority
