"""Segments: what is known of the values in many base files, so that most are excluded unopened."""
