"""The server that stands in for a static host."""

import gzip
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import pytest

from static_server import serving


@pytest.fixture
def url(tmp_path: Path) -> Iterator[str]:
    site = tmp_path / "site"
    (site / "guide").mkdir(parents=True)
    (site / "guide" / "index.html").write_text("<p>guide</p>", "utf-8")
    (site / "404.html").write_text("<p>nowhere</p>", "utf-8")
    (tmp_path / "secret.txt").write_text("secret", "utf-8")
    with serving(site) as address:
        yield address


def test_a_page_is_sent_compressed_to_who_takes_it(url: str) -> None:
    request = urllib.request.Request(url + "guide/", headers={"Accept-Encoding": "gzip"})
    with urllib.request.urlopen(request) as answer:
        assert answer.headers["Content-Encoding"] == "gzip"
        assert gzip.decompress(answer.read()) == b"<p>guide</p>"


def test_a_folder_without_its_slash_leads_to_the_page(url: str) -> None:
    with urllib.request.urlopen(url + "guide") as answer:
        assert answer.url == url + "guide/"


@pytest.mark.parametrize("path", ["no/such/page/", "../secret.txt", "%2e%2e/secret.txt"])
def test_what_is_not_in_the_site_is_answered_with_its_own_page(url: str, path: str) -> None:
    with pytest.raises(urllib.error.HTTPError) as raised:
        urllib.request.urlopen(url + path)
    with raised.value as answer:
        assert answer.code == 404
        assert answer.read() == b"<p>nowhere</p>"


def test_nothing_lies_outside_the_path_of_the_site(url: str) -> None:
    with pytest.raises(urllib.error.HTTPError) as raised:
        urllib.request.urlopen(url.removesuffix("handbook/") + "guide/")
    raised.value.close()
    assert raised.value.code == 404
