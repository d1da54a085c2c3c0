"""The queries of the reading benchmark, as each contestant runs them."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Query:
    """A query of the benchmark.

    Attributes:
        name: In the results.
        where: The condition, in Spark SQL that the other contestants understand too.
        columns: The columns returned; all if empty.
        counts: Whether the query returns only the number of rows.
        by_others: An equivalent condition, if `where` calls a function of this service.
        words: The query for Lance's full-text index, in place of the condition.
        spark: How many times as fast as Spark it should be.
        duckdb: How many times as fast as DuckDB it should be.
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
"""A query that no index helps: it should cost hardly more than a scan."""
