"""The index is made by what the handbook says, and by no settings that lie where a build is started."""

from __future__ import annotations

from pathlib import Path

import pytest
from mkdocs.exceptions import PluginError

from benchbook.rendering import search
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


def test_an_index_that_comes_to_no_end_is_one_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write(tmp_path / "index.html", '<html lang="en"><body data-pagefind-body><p>Memory</p></body></html>')
    monkeypatch.setattr(search, "LONGEST_SECONDS", 1e-6)
    with pytest.raises(
        PluginError, match=r"docs:1: the index of the search was not made within .* s; show less"
    ):
        build_index(tmp_path)
