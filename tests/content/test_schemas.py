"""The shapes that are published are those that validation holds files to."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from benchbook.content.records import bundle_digest
from benchbook.content.schemas import MODELS, schema, write_schemas
from benchbook.content.validation import machine_problems, record_problems

ROOT = Path(__file__).resolve().parents[2]
RECORDS = ROOT / "snippets/records"


def errors(name: str, table: Any) -> list[str]:
    validator = jsonschema.Draft202012Validator(schema(name))
    return [error.message for error in validator.iter_errors(table)]


@pytest.mark.parametrize("name", MODELS)
def test_each_is_a_valid_schema_of_the_newest_dialect(name: str) -> None:
    jsonschema.Draft202012Validator.check_schema(schema(name, "https://example.org/handbook/"))


@pytest.mark.slow
def test_every_committed_file_fits_its_schema() -> None:
    records = sorted(RECORDS.glob("*/*/*.json"))
    assert records
    for path in records:
        assert errors("record-1.json", json.loads(path.read_text("utf-8"))) == []
    for path in RECORDS.glob("*/machine.json"):
        assert errors("machine-1.json", json.loads(path.read_text("utf-8"))) == []


def test_a_bundle_of_what_is_committed_fits_its_schema() -> None:
    path = next(RECORDS.glob("*/machine.json"))
    machine = json.loads(path.read_text("utf-8"))
    record = json.loads(next(path.parent.glob("*/*.json")).read_text("utf-8"))
    digest = bundle_digest(machine, [record])
    bundle = {"schema": 1, "digest": digest, "machine": machine, "records": [record]}
    assert errors("bundle-1.json", bundle) == []
    assert errors("bundle-1.json", bundle | {"digest": "none"}) != []


@pytest.mark.parametrize("damage", [{"machine": "../x"}, {"licence": "MIT"}, {"extra": 1}, {"variants": []}])
def test_what_validation_refuses_for_its_shape_the_schema_refuses(damage: dict[str, Any]) -> None:
    table = json.loads(next(RECORDS.glob("*/*/*.json")).read_text("utf-8")) | damage
    assert record_problems(table, "record.json") != []
    assert errors("record-1.json", table) != []


def test_a_description_without_a_kind_is_refused_by_both() -> None:
    table = json.loads(next(RECORDS.glob("*/machine.json")).read_text("utf-8"))
    del table["kind"]
    assert machine_problems(table, "machine.json") != []
    assert errors("machine-1.json", table) != []


def test_they_are_written_at_an_address_that_stays(tmp_path: Path) -> None:
    write_schemas(tmp_path, "https://example.org/handbook/")
    assert sorted(path.name for path in (tmp_path / "schemas").iterdir()) == sorted(MODELS)
    made = json.loads((tmp_path / "schemas/record-1.json").read_text("utf-8"))
    assert made["$id"] == "https://example.org/handbook/schemas/record-1.json"


def test_contributors_are_told_where_they_are() -> None:
    (site,) = re.findall(
        r"^site_url: !ENV \[SITE_URL, (.*)\]$", (ROOT / "mkdocs.yml").read_text("utf-8"), re.M
    )
    text = (ROOT / "CONTRIBUTING.md").read_text("utf-8")
    for name in MODELS:
        assert f"({schema(name, site)['$id']})" in text
