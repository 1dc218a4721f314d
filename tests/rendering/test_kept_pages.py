"""While the site is served, a page that is made of the same is not rendered again, and the site is as if it were."""

from __future__ import annotations

import os
import re
import shutil
from pathlib import Path
from typing import Any

import pytest
from mkdocs.structure.pages import Page

from benchbook.content.project import Project
from benchbook.rendering.kept_pages import KeptPages
from handbooks import CPU, build_site, files_of, set_metric, whole_handbook

# Notices of a translation tell how the English page has changed.
MEMORY = ("memory/", "ar/memory/", "ja/memory/", "zh/memory/")


def served_handbook(folder: Path) -> Project:
    """The small handbook without its search, which a served site builds once."""
    project = whole_handbook(folder)
    config = folder / "mkdocs.yml"
    config.write_text(config.read_text("utf-8") + "plugins:\n  benchbook: {search: false}\n", "utf-8")
    return project


@pytest.fixture
def rendered(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The addresses of the pages that are rendered, as builds go on."""
    seen: list[str] = []
    genuine = KeptPages.keep

    def keep(self: KeptPages, page: Page, *rest: Any) -> None:
        seen.append(page.file.dest_uri)
        genuine(self, page, *rest)

    monkeypatch.setattr(KeptPages, "keep", keep)
    return seen


def saved(path: Path, old: str, new: str) -> None:
    """Save a file as an editor does: later than it was read."""
    text = path.read_text("utf-8")
    assert old in text
    path.write_text(text.replace(old, new), "utf-8")
    os.utime(path, ns=(path.stat().st_atime_ns, path.stat().st_mtime_ns + 10**9))


def served_anew(project: Project, folder: Path) -> dict[str, bytes]:
    """What a first build of the same tree writes."""
    shutil.copytree(project.root, folder, ignore=shutil.ignore_patterns("site", ".cache"))
    return files_of(build_site(Project(folder), "serve"))


@pytest.mark.parametrize(
    ("file", "old", "new", "again"),
    [
        (
            "docs/en/memory.md",
            "# Memory",
            "# Memories",
            {*MEMORY},
        ),
        (
            "docs/ja/measured.md",
            "# ",
            "# 新しい",
            {"ja/measured/"},
        ),
    ],
)
def test_a_saved_page_alone_is_rendered_again_and_all_is_as_if_built_anew(
    tmp_path: Path, rendered: list[str], file: str, old: str, new: str, again: set[str]
) -> None:
    project = served_handbook(tmp_path / "handbook")
    build_site(project, "serve")
    rendered.clear()
    saved(project.root / file, old, new)
    warm = files_of(build_site(project, "serve"))
    assert {name.removesuffix("index.html") for name in rendered} <= again
    assert rendered
    assert warm == served_anew(project, tmp_path / "other")


def test_the_lists_of_claims_alone_follow_a_claim_that_says_something_else(
    tmp_path: Path, rendered: list[str]
) -> None:
    project = served_handbook(tmp_path / "handbook")
    build_site(project, "serve")
    rendered.clear()
    page = project.docs / "ja/asserted.md"
    sentence = re.findall(r"^```claim .*\n(.*)\n", page.read_text("utf-8"), re.MULTILINE)[0]
    saved(page, sentence, f"{sentence}そうだ。")
    warm = files_of(build_site(project, "serve"))
    assert {name.removesuffix("index.html") for name in rendered} <= {
        "ja/asserted/",
        "ja/claims/",
        "ja/claims/asserted/",
    }
    assert "そうだ。".encode() in warm["ja/claims/asserted/index.html"]
    assert warm == served_anew(project, tmp_path / "other")


def test_nothing_is_rendered_again_where_nothing_was_saved(tmp_path: Path, rendered: list[str]) -> None:
    project = served_handbook(tmp_path / "handbook")
    first = files_of(build_site(project, "serve"))
    rendered.clear()
    assert files_of(build_site(project, "serve")) == first
    assert rendered == []


def test_a_record_or_a_word_of_the_interface_that_changes_is_shown(tmp_path: Path) -> None:
    project = served_handbook(tmp_path / "handbook")
    build_site(project, "serve")
    set_metric(project, CPU, "peak_memory", {"method=checkpointing,batch_size=4": 3 * 2**30})
    record = project.record_path(CPU, "memory/methods.py")
    os.utime(record, ns=(record.stat().st_atime_ns, record.stat().st_mtime_ns + 10**9))
    saved(project.docs / "en/_language.yml", "numbers_from: ", "numbers_from: Truly ")
    warm = files_of(build_site(project, "serve"))
    assert b"3\xc2\xa0GiB</data>" in warm["measured/index.html"]
    assert b"Truly " in warm["measured/index.html"]
    assert warm == served_anew(project, tmp_path / "other")


def test_what_a_page_fetches_and_a_reader_downloads_goes_with_its_page_and_script(tmp_path: Path) -> None:
    project = served_handbook(tmp_path / "handbook")
    site = build_site(project, "serve")
    assert (site / "assets/data/measured/ja").is_dir()
    assert (site / "downloads/memory/losses.ipynb").is_file()
    for page in project.docs.glob("*/*.md"):
        if "losses" in page.read_text("utf-8") or page.stem == "measured":
            page.unlink()
    (project.snippets / "memory/losses.py").unlink()
    (project.root / "mkdocs.yml").write_text(
        (project.root / "mkdocs.yml").read_text().replace("- measured.md", "")
    )
    warm = files_of(build_site(project, "serve"))
    assert not any(name.startswith(("assets/data/measured/", "downloads/memory/losses")) for name in warm)


def test_what_a_link_leads_to_is_not_handed_out(tmp_path: Path) -> None:
    project = served_handbook(tmp_path / "book")
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    (elsewhere / "secret.png").write_bytes(b"not of the site")
    (project.docs / "assets" / "folder").symlink_to(elsewhere)
    (project.docs / "assets" / "file.png").symlink_to(elsewhere / "secret.png")
    assert not [
        path
        for path, content in files_of(build_site(project, "serve")).items()
        if b"not of the site" in content
    ]


def test_a_build_that_is_not_served_keeps_nothing(tmp_path: Path, rendered: list[str]) -> None:
    build_site(served_handbook(tmp_path / "handbook"))
    assert rendered == []
