"""Documents below ``.hoodie/.index``, and index definitions."""
