"""The small handbook's records are what the script that makes them up writes."""

from __future__ import annotations

import runpy
import shutil
from pathlib import Path

from handbooks import FIXTURE, files_of


def test_the_made_up_records_are_those_that_are_committed(tmp_path: Path) -> None:
    shutil.copytree(FIXTURE, tmp_path / "handbook", symlinks=True)
    shutil.copy(FIXTURE.parent / "make_handbook_records.py", tmp_path)
    for path in (tmp_path / "handbook/snippets/records").glob("*/*/*.json"):
        path.unlink()
    runpy.run_path(str(tmp_path / "make_handbook_records.py"), run_name="__main__")
    made, committed = (files_of(folder / "snippets/records") for folder in (tmp_path / "handbook", FIXTURE))
    assert made == committed
