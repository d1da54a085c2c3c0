"""The trigger for Hudi's own writes: what a write config says, and the upkeep of its table."""
