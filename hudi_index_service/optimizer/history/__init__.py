"""Measurements of past queries by shape, kept between runs: bounded, decaying, without literals."""
