"""Lists as Hudi's Avro writer stores them."""

from tests.golden.recipe import Recipe
from tests.golden.recipes.shapes import keyed_rows, put_in_two_levels
from tests.hudi_tables import NO_METADATA_TABLE, hudi_options

NESTINGS = {
    "maps": "array(map('k', id), map('k', null, 'l', id + 1), map())",
    "structs": "array(named_struct('x', id), named_struct('x', null))",
    "arrays": "array(array(id, id + 1), array())",
    "deep_arrays": "array(array(array(id), array()), array(array(id + 1, id + 2)))",
    "map_of_arrays": "map('k', array(id, id + 1), 'l', null, 'm', array())",
    "map_of_maps": "map('k', map('j', id), 'l', null)",
    "map_of_maps_in_arrays": "map('k', array(map('j', id)), 'l', array())",
    "maps_of_arrays": "array(map('k', array(id)), map('l', null))",
    "arrays_of_maps": "array(array(map('k', id)), array())",
    "struct_of_maps": "named_struct('x', array(map('k', id)), 'y', id)",
    "structs_of_maps": "array(named_struct('x', array(map('k', id)), 'y', map('l', array(id))))",
}
"""Column → its value, NULL in every third row."""

IN_TWO_LEVELS = ["id = '7'", "id > '3' AND name = 'name1'", "name = 'name4'", "maps IS NULL"]


_COLUMNS = [
    f"if(id % 3 = {number % 3}, null, {value}) AS {name}"
    for number, (name, value) in enumerate(NESTINGS.items())
]
# Every nesting of arrays, maps and structs, with arrays in the older of Parquet's two layouts.
nested_in_two_levels = Recipe(
    hudi_options("t", **NO_METADATA_TABLE),
    put_in_two_levels(keyed_rows, 0, 20, "concat('name', id % 5) AS name", *_COLUMNS),
    lambda table: table.keep("written", IN_TWO_LEVELS),
)
