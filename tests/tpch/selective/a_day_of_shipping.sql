SELECT l_shipmode, count(*) AS parts, sum(l_quantity) AS quantity, avg(l_discount) AS discount
FROM lineitem
WHERE l_shipdate = DATE '1994-06-05'
GROUP BY l_shipmode
ORDER BY l_shipmode
