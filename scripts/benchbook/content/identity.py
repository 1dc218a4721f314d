"""Recognize, and cut from a text, what could identify a person or a machine wherever it is printed."""

from __future__ import annotations

import re

HOMES = re.compile(r"/(?:home|Users)/[^/\s\"'<>]*|/root(?=/)|[A-Za-z]:\\Users\\[^\\\s\"'<>]*")
# Of devices (NVML puts a prefix before them), disks and systems.
UUIDS = re.compile(
    r"\b(?:GPU|MIG)-[0-9a-f]{8}-[0-9a-f-]*|\b[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f-]*", re.IGNORECASE
)
# Not the product of two matrices, one of which has a method called. Before the @ are 64 characters at most
# (RFC 5321, 4.5.3.1.1), looked for from their beginning only: else a text takes the square of its length.
ADDRESSES = re.compile(r"(?<![\w.+-])[\w.+-]{1,64}@[\w-]+(?:\.[\w-]+)*\.[a-z]{2,}(?![\w(])")


def cut(text: str) -> str:
    """`text` without homes, UUIDs and e-mail addresses."""
    return ADDRESSES.sub("(address)", UUIDS.sub("(uuid)", HOMES.sub("~", text)))


def find(text: str) -> str | None:
    """The first thing in `text` that `cut` would take out, None if there is none."""
    for pattern in (HOMES, UUIDS, ADDRESSES):
        if match := pattern.search(text):
            return match[0]
    return None
