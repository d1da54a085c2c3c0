"""How many rows make a predicate TRUE: bounds that always hold, and a best guess between them."""
