"""The cost of reading: constants, and a model over them."""
