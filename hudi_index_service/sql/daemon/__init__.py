"""Spark sessions without Python ask a daemon by HTTP what others ask the Python process of their
driver."""
