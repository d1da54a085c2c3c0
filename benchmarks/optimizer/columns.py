"""The columns that queries use, by the kind of condition."""

from dataclasses import dataclass

ALL: tuple[str, ...] = ()


@dataclass(frozen=True)
class Columns:
    """The columns of a table that queries use.

    Attributes:
        ordered: For ranges.
        named: For single values and IN lists.
        equal, near, box: Correlated pairs: for two values; for a value and a range; for two ranges.
        texts: For prefixes and suffixes.
        words: For words in texts.
        nullable: For IS NULL.
        flags: Whole conditions.
        unindexed: A column of numbers without an index.
        payload: A column of hexadecimal digits without an index; "" if there is none.
        selections: The columns that queries return; `ALL` for all.
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
    selections: tuple[tuple[str, ...], ...]


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
        selections=(
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
        selections=(
            ("l_extendedprice", "l_discount"),
            ("l_orderkey", "l_shipdate", "l_comment"),
            ALL,
        ),
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
        selections=(("o_totalprice",), ("o_orderkey", "o_custkey", "o_comment"), ALL),
    ),
}
"""Kind of rows → columns."""
