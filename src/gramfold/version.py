"""The version, which server and sites compare."""

__version__ = "0.1.0"
