SELECT l_orderkey, l_linenumber, l_shipdate
FROM (
  SELECT
    l_orderkey,
    l_linenumber,
    l_shipdate,
    row_number() OVER (PARTITION BY l_orderkey ORDER BY l_shipdate DESC, l_linenumber) AS number
  FROM lineitem
  WHERE l_orderkey IN (1, 3, 7, 32, 600000) OR l_orderkey BETWEEN 35 AND 38
)
WHERE number = 1
ORDER BY l_orderkey
