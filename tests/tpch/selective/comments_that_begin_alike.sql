SELECT o_orderkey, o_comment
FROM orders
WHERE o_comment LIKE 'special requests%' OR o_comment LIKE 'special packed requests of t%'
ORDER BY o_orderkey
