"""Measured, replayed and checked: the engine of the transformer performance handbook."""

__version__ = "0.1.0"
