"""Small, dependency-free helpers; every module stands alone."""

__version__ = "0.1.0"
