"""Tables for agents that speak the Model Context Protocol: `hudi-index mcp`. Needs the extra
``mcp``."""
