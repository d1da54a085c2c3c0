"""A fleet of tables, kept by one service: which tables, under which policy, what was seen of each,
what needs attention, and the builds in processes of their own."""
