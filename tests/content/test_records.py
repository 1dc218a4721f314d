"""A record is read as it was written, diffs readably, and is written whole or not at all."""

from __future__ import annotations

import dataclasses
import json
import os
from pathlib import Path

import pytest

from benchbook.content.problems import BenchbookError
from benchbook.content.records import (
    HistoryLine,
    RankRun,
    Run,
    dump_record,
    load_record,
    record_from,
    write_record,
)
from builders import make_record


def test_a_record_comes_back_as_it_was_written(tmp_path: Path) -> None:
    record = make_record()
    write_record(tmp_path / "add.json", record)
    assert load_record(tmp_path / "add.json") == record


def test_the_same_record_is_always_the_same_text() -> None:
    assert dump_record(record_from(json.loads(dump_record(make_record())))) == dump_record(make_record())


def test_each_run_stands_on_a_line_of_its_own() -> None:
    lines = [line for line in dump_record(make_record()).splitlines() if '"place"' in line]
    assert len(lines) == 3


def test_a_number_that_json_has_not_is_never_written(tmp_path: Path) -> None:
    record = make_record(runs=(Run(0, {"total": float("nan")}, {}),))
    with pytest.raises(ValueError, match="not JSON compliant"):
        write_record(tmp_path / "add.json", record)
    assert list(tmp_path.iterdir()) == []


def test_a_write_that_fails_leaves_the_old_record_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "add.json"
    write_record(path, make_record())
    before = path.read_bytes()

    def fail(source: str, target: Path) -> None:
        raise OSError("disk full")

    monkeypatch.setattr(os, "replace", fail)
    with pytest.raises(OSError, match="disk full"):
        write_record(
            path, dataclasses.replace(make_record(), history=(HistoryLine("2026-01-01", "old", [], {}),))
        )
    assert path.read_bytes() == before
    assert list(tmp_path.iterdir()) == [path]


def test_a_missing_record_is_none_and_a_broken_one_an_error_with_its_line(tmp_path: Path) -> None:
    assert load_record(tmp_path / "add.json") is None
    (tmp_path / "add.json").write_text('{\n"schema": 1,\n')
    with pytest.raises(BenchbookError, match=r"add\.json:3: is not JSON"):
        load_record(tmp_path / "add.json")


@pytest.mark.parametrize(
    "text", ["[]", '{"schema": 9}', '{"schema": 1}', '{"schema": 1, "variants": 3}', "[" * 10**5]
)
def test_anything_else_is_refused_as_no_record(tmp_path: Path, text: str) -> None:
    (tmp_path / "add.json").write_text(text)
    with pytest.raises(BenchbookError, match="is not a record"):
        load_record(tmp_path / "add.json")


def test_a_folder_in_the_place_of_a_record_is_no_record(tmp_path: Path) -> None:
    with pytest.raises(BenchbookError, match="is not a record"):
        load_record(tmp_path)


def test_a_meter_is_the_largest_reading_over_the_ranks() -> None:
    other = RankRun({}, {"add": {"seconds": 0.3}})
    run = Run(0, {}, {"add": {"seconds": 0.2, "allocated": None}}, other_ranks=(other,))
    assert run.meter("add", "seconds") == 0.3
    assert run.meter("add", "allocated") is None
