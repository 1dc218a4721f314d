"""What a build writes."""

import json
from pathlib import Path

from browser.building import FIXTURE, build
from handbooks import whole_handbook


def test_two_builds_of_the_same_tree_are_the_same_bytes(tmp_path: Path, fixture_site: Path) -> None:
    again = build(whole_handbook(tmp_path / "handbook").root / "mkdocs.yml", tmp_path / "again")
    files = sorted(path.relative_to(again) for path in again.rglob("*") if path.is_file())
    assert files == sorted(
        path.relative_to(fixture_site) for path in fixture_site.rglob("*") if path.is_file()
    )
    assert [file for file in files if (again / file).read_bytes() != (fixture_site / file).read_bytes()] == []


def test_each_language_has_an_index_of_its_own(fixture_site: Path) -> None:
    entry = json.loads((fixture_site / "pagefind" / "pagefind-entry.json").read_text("utf-8"))
    assert list(entry["languages"]) == ["ar", "en", "ja", "zh"]
    for code, index in entry["languages"].items():
        # The claims of `asserted.md` are listed on a page that stands in no file.
        assert index["page_count"] == len(list((FIXTURE / "docs" / code).glob("*.md"))) + 1


def test_the_sitemap_holds_each_translated_page_once_and_no_stand_in(fixture_site: Path) -> None:
    sitemap = (fixture_site / "sitemap.xml").read_text("utf-8")
    assert sitemap.count("<loc>https://handbook.example/handbook/ja/memory/</loc>") == 1
    assert sitemap.count("<loc>https://handbook.example/handbook/english_only/</loc>") == 1
    assert "ja/english_only" not in sitemap


def test_what_no_page_loads_is_left_out(fixture_site: Path) -> None:
    names = {path.name for path in fixture_site.rglob("*") if path.is_file()}
    assert not [name for name in names if name.endswith(".map")]
    assert not (fixture_site / "assets" / "javascripts").exists()
    assert not (fixture_site / "_language.yml").exists()
    assert not (fixture_site / "ja" / "_language.yml").exists()
