"""Spark's plans: what do they read, and under which conditions?"""
