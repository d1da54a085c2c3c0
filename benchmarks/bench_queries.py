"""The queries that reading is measured by, as each contestant is asked them."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Query:
    """A query of the benchmark.

    Attributes:
        name: Under which it is reported.
        where: The condition, in Spark SQL; the others understand it too.
        columns: What is returned; all columns when empty.
        counts: Whether only the number of rows is asked for.
        by_others: The condition in other words, where `where` has a function of this service.
        words: What Lance's full-text index is asked, instead of the condition.
        spark: How many times as fast as Spark it should be …
        duckdb: … and as DuckDB.
    """

    name: str
    where: str
    columns: tuple[str, ...] = ()
    counts: bool = False
    by_others: str = ""
    words: str = ""
    spark: float = 0
    duckdb: float = 0

    @property
    def sql(self) -> str:
        """The condition for other contestants."""
        return self.by_others or self.where

    def select(self, source: str) -> str:
        """The whole query in SQL."""
        columns = "count(*)" if self.counts else ", ".join(self.columns) or "*"
        return f"SELECT {columns} FROM {source} WHERE {self.sql}"  # noqa: S608 - all constants


def queries(key: str) -> list[Query]:
    """The queries; `key` is the record key of any one row."""
    return [
        Query(
            "a sender",
            "sender = 'User1234'",
            ("sender", "msg", "amount"),
            spark=60,
            duckdb=7,
        ),
        Query(
            "a narrow range",
            "amount BETWEEN 500000 AND 500010",
            ("sender", "amount"),
            spark=10,
            duckdb=2.2,
        ),
        Query("one row by record key", f"key = '{key}'", spark=200, duckdb=15),
        Query(
            "prefix and sender, no row",
            "msg LIKE 'buying new%' AND sender = 'User1234'",
            ("msg", "sender"),
            spark=500,
            duckdb=80,
        ),
        Query(
            "a count",
            "city = 'city17' AND amount < 5000",
            counts=True,
            spark=200,
            duckdb=40,
        ),
        Query(
            "full text, a rare word",
            "match(msg, 'tag4242')",
            ("msg", "sender"),
            # The tag is each message's last word.
            by_others="msg LIKE '% tag4242'",
            words="tag4242",
            spark=100,
            duckdb=50,
        ),
        Query(
            "text inside words",
            "msg LIKE '%tag4242%'",
            ("msg", "sender"),
            spark=4,
            duckdb=2,
        ),
    ]


HALF = Query("half of the rows", "amount < 500000", ("sender", "amount"))
"""What no index helps with: it may cost hardly more than a scan."""
