"""Describe a machine and read its meters."""
