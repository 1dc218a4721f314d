"""Where the browser tests look: pages, as addresses below the start page, and how wide the window is."""

from pathlib import Path

from benchbook.content.project import Project

DESKTOP = {"width": 1280, "height": 860}
PHONE = {"width": 360, "height": 740}
ROOT = Path(__file__).parents[2]
LANGUAGES = Project(ROOT).languages
TRANSLATIONS = tuple(code for code in LANGUAGES if code != "en")


def address(language: str, guide: str = "index") -> str:
    """The address of `guide` in `language`, relative to the site's start page."""
    prefix = "" if language == "en" else f"{language}/"
    return prefix if guide == "index" else f"{prefix}{guide}/"


GUIDES = tuple(path.stem for path in sorted((ROOT / "docs" / "en").glob("*.md")))
ADDRESSES = tuple(address(language, guide) for language in LANGUAGES for guide in GUIDES)


def written_in(guide: str) -> list[str]:
    """The languages that `guide` is written in; the others show the English text."""
    return [code for code in LANGUAGES if (ROOT / "docs" / code / f"{guide}.md").exists()]
