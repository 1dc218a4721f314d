"""The index is made by what the handbook says, and by no settings that lie where a build is started."""

from __future__ import annotations

from pathlib import Path

import pytest

from benchbook.rendering.search import build_index, languages
from builders import write


def test_no_settings_are_taken_from_where_a_build_is_started(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    site, record = tmp_path / "site", write(tmp_path / "record.json", "what somebody measured")
    write(site / "index.html", '<html lang="en"><body data-pagefind-body><p>Memory</p></body></html>')
    write(tmp_path / "pagefind.yml", f"logfile: {record}\n")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PAGEFIND_OUTPUT_SUBDIR", "elsewhere")
    assert languages(build_index(Path("site"))) == ["en"]
    assert record.read_text("utf-8") == "what somebody measured"
    assert not (site / "elsewhere").exists()
