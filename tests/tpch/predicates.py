"""The queries' conditions on single rows of the clustered tables, as Spark's optimizer states them:
times are computed, and conditions on two tables or two columns are left out. Keys are those that
the small tables have too."""

ORDERS = {
    "q3": "o_orderdate < DATE'1995-03-15'",
    "q4": "o_orderdate >= DATE'1993-07-01' AND o_orderdate < DATE'1993-10-01'",
    "q5": "o_orderdate >= DATE'1994-01-01' AND o_orderdate < DATE'1995-01-01'",
    "q8": "o_orderdate BETWEEN DATE'1995-01-01' AND DATE'1996-12-31'",
    "q10": "o_orderdate >= DATE'1993-10-01' AND o_orderdate < DATE'1994-01-01'",
    "q13": "o_comment NOT LIKE '%special%requests%'",
    "q21": "o_orderstatus = 'F'",
    "a_week_of_orders": "o_orderdate BETWEEN DATE'1993-08-02' AND DATE'1993-08-08' "
    "AND o_orderstatus = 'F'",
    "comments_that_begin_alike": "o_comment LIKE 'special requests%' "
    "OR o_comment LIKE 'special packed requests of t%' OR o_comment LIKE 'final %'",
    "one_order_with_its_lines": "o_orderkey = 7",
    "orders_of_a_customer": "o_custkey = 37",
    "orders_shipped_early": "o_custkey IN (37, 78, 124)",
}

LINEITEM = {
    "q1": "l_shipdate <= DATE'1998-09-02'",
    "q3": "l_shipdate > DATE'1995-03-15'",
    "q6": "l_shipdate >= DATE'1994-01-01' AND l_shipdate < DATE'1995-01-01' "
    "AND l_discount BETWEEN 0.05 AND 0.07 AND l_quantity < 24",
    "q7": "l_shipdate BETWEEN DATE'1995-01-01' AND DATE'1996-12-31'",
    "q10": "l_returnflag = 'R'",
    "q12": "l_shipmode IN ('MAIL', 'SHIP') AND l_receiptdate >= DATE'1994-01-01' "
    "AND l_receiptdate < DATE'1995-01-01'",
    "q14": "l_shipdate >= DATE'1995-09-01' AND l_shipdate < DATE'1995-10-01'",
    "q15": "l_shipdate >= DATE'1996-01-01' AND l_shipdate < DATE'1996-04-01'",
    "q19": "l_shipmode IN ('AIR', 'AIR REG') AND l_shipinstruct = 'DELIVER IN PERSON' "
    "AND (l_quantity >= 1 AND l_quantity <= 11 OR l_quantity >= 10 AND l_quantity <= 20 "
    "OR l_quantity >= 20 AND l_quantity <= 30)",
    "q20": "l_shipdate >= DATE'1994-01-01' AND l_shipdate < DATE'1995-01-01'",
    "a_day_of_shipping": "l_shipdate = DATE'1994-06-05'",
    "buyers_of_a_part": "l_partkey = 15 AND l_shipmode <> 'RAIL'",
    "late_lines_of_a_supplier": "l_suppkey = 7 AND l_quantity = 50 AND l_returnflag IN ('R', 'A')",
    "latest_line_of_each_order": "l_orderkey IN (1, 3, 7, 32, 6000) "
    "OR l_orderkey BETWEEN 35 AND 38",
    "one_order": "l_orderkey = 32",
}

OF_TABLE = {"orders": ORDERS, "lineitem": LINEITEM}
