"""What queries ask of which columns of the tables."""

from dataclasses import dataclass

ALL: tuple[str, ...] = ()

LITERALS = 4
"""Sets of literals."""

ALL: tuple[str, ...] = ()


@dataclass(frozen=True)
class Columns:
    """What is asked of which columns of a table.

    Attributes:
        ordered: For ranges.
        named: For single values and lists of them.
        equal, near, box: Correlated pairs: for two values; for a value and a range; for two ranges.
        texts: For the beginnings and ends of texts.
        words: For words in texts.
        nullable: For IS NULL.
        flags: Conditions as they are.
        unindexed: Of numbers.
        payload: Of hexadecimal digits that no index has; "" if there is none.
        asked: Columns that are asked for; `ALL` for all.
    """

    ordered: tuple[str, ...]
    named: tuple[str, ...]
    equal: tuple[tuple[str, str], ...]
    near: tuple[tuple[str, str], ...]
    box: tuple[tuple[str, str], ...]
    texts: tuple[str, ...]
    words: str
    nullable: tuple[str, ...]
    flags: tuple[str, ...]
    unindexed: str
    payload: str
    asked: tuple[tuple[str, ...], ...]


COLUMNS = {
    "generated": Columns(
        ordered=("seq", "mixed", "day", "amount", "weight", "hot", "ref"),
        named=("city", "country", "month", "category", "name", "status", "hot", "ref", "day"),
        equal=(("city", "country"), ("day", "month")),
        near=(("category", "amount"),),
        box=(("seq", "mixed"),),
        texts=("name", "ref"),
        words="note",
        nullable=("note", "weight", "closed"),
        flags=("flag = true", "flag = false", "status <> 'done'", "NOT flag"),
        unindexed="price",
        payload="payload",
        asked=(
            ("amount",),
            ("key", "city", "amount"),
            ("name", "weight", "note", "payload"),
            ALL,
        ),
    ),
    "lineitem": Columns(
        ordered=("l_orderkey", "l_partkey", "l_quantity", "l_shipdate", "l_receiptdate"),
        named=(
            *("l_orderkey", "l_partkey", "l_suppkey", "l_quantity", "l_discount", "l_returnflag"),
            *("l_shipdate", "l_commitdate", "l_receiptdate", "l_shipinstruct", "l_shipmode"),
        ),
        equal=(("l_returnflag", "l_linestatus"), ("l_partkey", "l_suppkey")),
        near=(("l_returnflag", "l_shipdate"), ("l_linestatus", "l_receiptdate")),
        box=(("l_shipdate", "l_receiptdate"), ("l_shipdate", "l_commitdate")),
        texts=("l_shipinstruct", "l_shipmode"),
        words="l_comment",
        nullable=(),
        flags=("l_returnflag = 'R'", "l_linestatus <> 'F'", "NOT (l_shipmode = 'AIR')"),
        unindexed="l_extendedprice",
        payload="",
        asked=(("l_extendedprice", "l_discount"), ("l_orderkey", "l_shipdate", "l_comment"), ALL),
    ),
    "orders": Columns(
        ordered=("o_orderkey", "o_custkey", "o_orderdate"),
        named=("o_orderkey", "o_custkey", "o_orderdate", "o_orderstatus", "o_orderpriority"),
        equal=(("o_custkey", "o_orderdate"),),
        near=(("o_orderstatus", "o_orderdate"),),
        box=(("o_orderkey", "o_custkey"),),
        texts=("o_orderpriority", "o_comment"),
        words="o_comment",
        nullable=(),
        flags=("o_orderstatus = 'P'", "o_orderstatus <> 'O'", "NOT (o_orderpriority = '5-LOW')"),
        unindexed="o_totalprice",
        payload="",
        asked=(("o_totalprice",), ("o_orderkey", "o_custkey", "o_comment"), ALL),
    ),
}
"""By the kind of rows."""
