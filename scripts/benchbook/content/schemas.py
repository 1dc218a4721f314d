"""Publish the shape of what contributors hand in as JSON Schema, generated from what validates it."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Annotated, Any, Literal

from benchbook.content.formats import Digest, Limit, Many, Stored
from benchbook.content.machines import MachineDescription
from benchbook.content.predictions import PredictionRecord
from benchbook.content.records import Record
from benchbook.content.traces import LARGEST
from benchbook.content.validation import adapter

FOLDER = "schemas"
DIALECT = "https://json-schema.org/draft/2020-12/schema"


@dataclass(frozen=True)
class StoredBundle(Stored):
    """What `benchbook record --bundle` writes and `benchbook import` reads; traces are files in base64."""

    schema: Literal[1]
    digest: Digest
    machine: MachineDescription
    records: Many[Record]
    traces: dict[Digest, Annotated[str, Limit(max_length=4 * LARGEST // 3 + 4)]] = field(default_factory=dict)


# The number is that of the schema a file names: a change that old files do not fit gets a new one.
MODELS: dict[str, type[Stored]] = {
    "record-1.json": Record,
    "machine-1.json": MachineDescription,
    "bundle-1.json": StoredBundle,
    "prediction-1.json": PredictionRecord,
}


def schema(name: str, site_url: str = "") -> dict[str, Any]:
    """The JSON Schema of one kind of file.

    Parameters:
        name: One of `MODELS`.
        site_url: Where the site lies, for the schema's own address; empty for none.
    """
    made = adapter(MODELS[name]).json_schema()
    head = {"$schema": DIALECT}
    if site_url:
        head["$id"] = f"{site_url.rstrip('/')}/{FOLDER}/{name}"
    return {**head, **made}


def write_schemas(site: Path, site_url: str) -> None:
    """Write each schema below `site`, at an address that stays."""
    folder = site / FOLDER
    folder.mkdir(parents=True, exist_ok=True)
    for name in MODELS:
        (folder / name).write_text(_text(name, site_url), "utf-8")


@cache
def _text(name: str, site_url: str) -> str:
    """A schema as it is written: a site that is served writes it at each save."""
    return json.dumps(schema(name, site_url), indent=2, sort_keys=True, ensure_ascii=False) + "\n"
