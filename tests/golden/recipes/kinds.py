"""Small tables with columns of many kinds."""

from tests.golden.recipe import Recipe, numbers, put
from tests.hudi_tables import hudi_options

COLUMNS = (
    "cast(id AS string) AS id",
    "if(id % 13 < 2, null, concat('Buying car ', id % 50)) AS msg",
    "id * 3 AS amount",
    "element_at(array(double('NaN'), -0.0D, 0.0D, 1.5D, null), int(id % 5) + 1) AS price",
    "id % 4 = 1 AS flag",
    "if(id % 9 = 0, null, named_struct('city', concat('city ', id % 7), 'zip', id)) AS home",
    "if(id % 8 = 0, null, array(concat('tag', id % 5), concat('tag', id % 3))) AS tags",
    "0L AS ts",
    "concat('p', id % 2) AS part",
)
# 300 rows in each of two partitions: texts, numbers, flags, a struct, an array.
kinds_in_two_partitions = Recipe(
    hudi_options("verified", partition_column="part"), put(numbers, 600, *COLUMNS)
)
