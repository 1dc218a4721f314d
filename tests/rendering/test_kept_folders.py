"""Folders of a served site that outlive its builds."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from benchbook.rendering.kept_pages import KeptFolders
from handbooks import files_of


@pytest.fixture
def folders() -> Iterator[KeptFolders]:
    kept = KeptFolders()
    yield kept
    kept.close()


def emptied(site: Path) -> None:
    """What MkDocs does to a site before it builds it again."""
    for path in site.iterdir():
        shutil.rmtree(path, ignore_errors=True)


@pytest.mark.parametrize("name", ["downloads", "assets/data"])
def test_a_folder_holds_what_it_is_given_and_nothing_else(
    tmp_path: Path, folders: KeptFolders, name: str
) -> None:
    site, source = tmp_path / "site", tmp_path / "source"
    source.write_text("a file", "utf-8")
    folders.place(site, name, {"a/b": "one", "c": b"two", "d": source})
    assert files_of(site / name) == {"a/b": b"one", "c": b"two", "d": b"a file"}
    emptied(site)
    source.write_text("another", "utf-8")
    folders.place(site, name, {"a/b": "one", "d": source, "e": "three"})
    assert files_of(site / name) == {"a/b": b"one", "d": b"another", "e": b"three"}


def test_what_has_not_changed_is_not_written_again(tmp_path: Path, folders: KeptFolders) -> None:
    folders.place(tmp_path, "downloads", {"a": "one", "b": "two"})
    before = (tmp_path / "downloads/a").stat().st_mtime_ns, (tmp_path / "downloads/a").stat().st_ino
    (tmp_path / "downloads/b").write_text("touched", "utf-8")
    emptied(tmp_path)
    folders.place(tmp_path, "downloads", {"a": "one", "b": "two"})
    assert ((tmp_path / "downloads/a").stat().st_mtime_ns, (tmp_path / "downloads/a").stat().st_ino) == before
    assert (tmp_path / "downloads/b").read_text("utf-8") == "touched"


def test_where_no_link_can_be_made_there_are_copies(
    tmp_path: Path, folders: KeptFolders, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object, **__: object) -> None:
        raise OSError("a privilege is not held")

    monkeypatch.setattr(Path, "symlink_to", refuse)
    for text in ("one", "two"):
        folders.place(tmp_path, "downloads", {"a": text})
        assert files_of(tmp_path / "downloads") == {"a": text.encode()}
        assert not (tmp_path / "downloads").is_symlink()
        emptied(tmp_path)


def test_nothing_stays_once_the_server_stops(tmp_path: Path) -> None:
    folders = KeptFolders()
    folders.place(tmp_path, "downloads", {"a": "one"})
    home = (tmp_path / "downloads").resolve()
    folders.close()
    assert not home.exists()
