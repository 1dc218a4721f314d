"""Replay records in pages: references, fences, values, tables, charts and where each comes from."""
