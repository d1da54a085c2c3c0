"""Analyzed text: which words does it have, and how well does it match?"""
