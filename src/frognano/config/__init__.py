"""Strict typed settings and recipes; the one place that reads the environment."""
