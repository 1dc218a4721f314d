"""What every built page says of itself, read from its HTML without a browser."""

from __future__ import annotations

import gzip
import json
import re
from html import unescape
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from browser.addresses import ADDRESSES, GUIDES, LANGUAGES, TRANSLATIONS, address, written_in

# As they travel, compressed: a letter has up to three bytes in other scripts than Latin.
MOST_BYTES, MOST_TRANSLATED_BYTES, MOST_ELEMENTS = 64_000, 70_000, 8_000
MOST_COMPRESSED = 60_000
MOST_OF_A_PICTURE = 300
LOADING_LINKS = {"stylesheet", "preload", "modulepreload", "icon", "manifest", "prefetch"}


class Head(HTMLParser):
    """The title, the description, the links and the loaded files of a page."""

    def __init__(self, path: Path) -> None:
        super().__init__()
        self.title = ""
        self.meta: dict[str, str] = {}
        self.links: list[dict[str, str]] = []
        self.loaded: list[str] = []
        self._in_title = False
        self.feed(path.read_text("utf-8"))

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        found = {name: value or "" for name, value in attrs}
        self._in_title = tag == "title" and not self.title
        if tag == "meta" and (name := found.get("name") or found.get("property")):
            self.meta[name] = found.get("content", "")
        if tag == "link":
            self.links.append(found)
            if LOADING_LINKS & set(found.get("rel", "").split()):
                self.loaded.append(found.get("href", ""))
        elif tag != "a" and "src" in found:
            self.loaded.append(found["src"])

    def handle_data(self, data: str) -> None:
        if self._in_title:
            self.title += data
            self._in_title = False

    def hrefs(self, relation: str) -> dict[str, str]:
        """Where the links of a kind lead, by their language."""
        return {
            link.get("hreflang", ""): link.get("href", "")
            for link in self.links
            if link.get("rel") == relation
        }


@pytest.fixture(scope="module")
def heads(site: Path) -> dict[str, Head]:
    """The heads of all pages of the handbook, by address."""
    return {where: Head(site / where / "index.html") for where in ADDRESSES}


def test_every_page_has_a_title_and_a_description(heads: dict[str, Head]) -> None:
    assert [where for where, head in heads.items() if not head.title.strip()] == []
    assert [where for where, head in heads.items() if not head.meta.get("description")] == []


def test_every_page_links_absolutely_to_the_languages_it_is_written_in(heads: dict[str, Head]) -> None:
    for guide in GUIDES:
        written = written_in(guide)
        for language in LANGUAGES:
            links = heads[address(language, guide)].hrefs("alternate")
            expected = sorted([*written, "x-default"]) if language in written else []
            assert sorted(links) == expected, address(language, guide)
            assert all(link.startswith("https://") for link in links.values()), address(language, guide)


def test_every_page_names_the_address_of_its_own_text(heads: dict[str, Head]) -> None:
    for guide in GUIDES:
        written = written_in(guide)
        for language in LANGUAGES:
            original = address(language if language in written else "en", guide)
            canonical = urlsplit(heads[address(language, guide)].hrefs("canonical").get("", ""))
            assert canonical.scheme == "https", address(language, guide)
            assert canonical.path.endswith(f"/handbook/{original}"), address(language, guide)


def test_every_page_says_what_a_link_to_it_shows(heads: dict[str, Head]) -> None:
    for where, head in heads.items():
        assert head.meta["og:title"], where
        assert head.meta["og:description"] == head.meta["description"], where
        assert head.meta["og:url"] == head.hrefs("canonical")[""], where
        assert head.meta["og:locale"] in {"en_US", "ar_EG", "zh_CN", "ja_JP"}, where
    assert {heads[address(code)].meta["og:type"] for code in LANGUAGES} == {"website"}


@pytest.mark.parametrize("code", ["zh", "ja"])
def test_what_readers_choose_from_is_joined_as_the_language_joins_things(site: Path, code: str) -> None:
    for path in (site / code).rglob("index.html"):
        if path.parent.name in GUIDES and code not in written_in(path.parent.name):
            continue
        options = re.findall(r"<option\b[^>]*>([^<]*)</option>", path.read_text("utf-8"))
        assert not [text for text in options if "," in text], path


def test_no_script_of_a_page_names_a_language() -> None:
    codes = "|".join(code for code in LANGUAGES if code != "en")
    for path in (Path(__file__).parents[2] / "docs" / "assets").glob("*.js"):
        assert not re.findall(rf"""["'](?:{codes})["']""", path.read_text("utf-8")), path


def test_no_page_loads_a_file_from_another_host(heads: dict[str, Head]) -> None:
    foreign = {
        where: [one for one in head.loaded if urlsplit(one).netloc]
        for where, head in heads.items()
        if any(urlsplit(one).netloc for one in head.loaded)
    }
    assert foreign == {}
    assert all(head.loaded for head in heads.values())


def test_no_page_is_heavier_than_a_telephone_carries(site: Path) -> None:
    """Whatever the number of machines: what other machines say is fetched once a reader asks."""
    for path in site.rglob("*.html"):
        size, elements = len(gzip.compress(path.read_bytes())), path.read_text("utf-8").count("</")
        translated = path.relative_to(site).parts[0] in TRANSLATIONS
        assert size <= (MOST_TRANSLATED_BYTES if translated else MOST_BYTES), path
        assert elements <= MOST_ELEMENTS, path


def test_what_a_page_fetches_is_small_once_compressed(site: Path) -> None:
    for path in (site / "assets" / "data").rglob("*.json"):
        assert len(gzip.compress(path.read_bytes())) <= MOST_COMPRESSED, path


def test_what_a_reader_can_open_is_in_the_data_of_the_page(site: Path) -> None:
    for path in site.rglob("*.html"):
        text = path.read_text("utf-8")
        settings = re.search(r'<script type="application/json" id="bb-page">(.*?)</script>', text)
        shown = re.findall(r'class="bb-value" data-bb="([^"]*)"><data [^>]*data-machine="([^"]*)"', text)
        values = {(machine, unescape(key)) for key, machine in shown}
        blocks = re.split(r'<(?:div|figure) class="bb-(?=[^>]*data-machine=)', text)[1:]
        origins = {
            (re.findall(r'data-machine="([^"]*)"', block)[0], key)
            for block in blocks
            for key in re.findall(r'<dl data-origin="([^"]*)"', block)
        }
        if settings is None:
            assert not origins | values, path
            continue
        folder = path.parent / json.loads(settings[1])["data"]
        data = {one.stem: json.loads(one.read_text("utf-8")) for one in folder.glob("*.json")}
        assert all(key in data[machine]["origins"] for machine, key in origins), path
        assert all(
            data[machine]["values"][key]["origin"] in data[machine]["origins"] for machine, key in values
        ), path


def test_a_picture_is_made_of_few_elements(site: Path) -> None:
    for path in site.rglob("*.html"):
        for drawing in re.findall(r"<svg.*?</svg>", path.read_text("utf-8"), re.S):
            assert drawing.count("<") - drawing.count("</") <= MOST_OF_A_PICTURE, path
