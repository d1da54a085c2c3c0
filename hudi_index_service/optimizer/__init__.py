"""The optimizer: how shall each slice be read, and why?"""
