"""What is kept of a script's output is bounded, plain text, and tells nobody's name."""

from __future__ import annotations

import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from benchbook.content.terminal import plain
from benchbook.recording.capture import Bounded, Scrubber


@given(st.lists(st.binary(max_size=40)))
def test_a_stream_within_bounds_is_kept_entirely(pieces: list[bytes]) -> None:
    stream = Bounded(head=1000, tail=1000)
    for piece in pieces:
        stream.add(piece)
    assert stream.text() == b"".join(pieces).decode("utf-8", "replace")


@given(st.lists(st.text("abc", min_size=1, max_size=40), min_size=10))
def test_beginning_and_end_of_a_long_stream_are_kept(pieces: list[str]) -> None:
    stream = Bounded(head=4, tail=3)
    for piece in pieces:
        stream.add(piece.encode())
    whole = "".join(pieces)
    left_out = len(whole) - 7
    assert stream.total == len(whole)
    if left_out > 0:
        assert (
            stream.text() == f"{whole[:4]}\n[... {left_out} of {len(whole)} bytes left out ...]\n{whole[-3:]}"
        )


def test_a_progress_bar_is_its_last_state() -> None:
    assert plain("10%\r50%\r100%\ndone\n") == "100%\ndone\n"


def test_line_ends_of_windows_are_line_ends() -> None:
    assert plain("one\r\ntwo\r\n") == "one\ntwo\n"


def test_colours_and_links_of_a_terminal_are_gone() -> None:
    assert plain("\x1b[31mred\x1b[0m \x1b]8;;https://a.b\x1b\\link\x1b]8;;\x1b\\ \x07") == "red link "


def test_markup_is_left_for_the_page_to_escape() -> None:
    assert plain("<b>&amp;</b>") == "<b>&amp;</b>"


def test_paths_become_relative_and_homes_nobodys() -> None:
    scrub = Scrubber("/home/jane/handbook", ["/tmp/bb-x1"], host="", user="")
    assert scrub('File "/home/jane/handbook/snippets/g/a.py"') == 'File "snippets/g/a.py"'
    assert scrub("in /home/jane/handbook") == "in ."
    assert scrub("/tmp/bb-x1/rank-0/out.txt") == "rank-0/out.txt"
    assert scrub("/home/john/.cache/x and /Users/ann/y") == "~/.cache/x and ~/y"


def test_paths_of_libraries_are_the_libraries(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        "benchbook.recording.capture.site.getsitepackages", lambda: ["/opt/env/lib/python3.11/site-packages"]
    )
    scrub = Scrubber("/r", host="", user="")
    assert scrub("/opt/env/lib/python3.11/site-packages/torch/x.py") == "site-packages/torch/x.py"


def test_paths_of_an_environment_below_are_the_libraries_too(monkeypatch: pytest.MonkeyPatch) -> None:
    below = "/opt/below/lib/python3.11/site-packages"
    monkeypatch.setattr("benchbook.recording.capture.sys.path", [*sys.path, below])
    assert (
        Scrubber("/r", host="", user="")(f"{below}/torch/x.py:7: gone") == "site-packages/torch/x.py:7: gone"
    )


def test_names_of_host_and_user_are_replaced_as_words() -> None:
    scrub = Scrubber("/r", host="janes-laptop", user="jane.doe")
    assert scrub("[janes-laptop]:29500 by jane.doe") == "[localhost]:29500 by user"
    assert scrub("janes-laptops stay") == "janes-laptops stay"


def test_a_name_that_is_an_ordinary_word_tells_nothing() -> None:
    assert Scrubber("/r", host="vm", user="root")("the vm runs as root") == "the vm runs as root"
