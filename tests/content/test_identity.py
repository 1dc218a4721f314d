"""What could identify a person or a machine is cut before it is recorded, and refused where it was not."""

from __future__ import annotations

import subprocess
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from benchbook.content.identity import cut, find

UUID = "f7dd4f7d-1234-5678-9abc-0123456789ab"


@pytest.mark.parametrize(
    ("text", "left"),
    [
        (f"NVIDIA H200, uuid={UUID}, 132", "NVIDIA H200, uuid=(uuid), 132"),
        (f"GPU-{UUID} and MIG-{UUID.upper()}", "(uuid) and (uuid)"),
        ("/home/john/.cache, /root/x, /Users/ann", "~/.cache, ~/x, ~"),
        ("ask jane.doe@mail.example.org.", "ask (address)."),
    ],
)
def test_what_identifies_is_cut(text: str, left: str) -> None:
    assert find(text) is not None
    assert cut(text) == left


@pytest.mark.parametrize(
    "text", ["h = x@w.T", "s = q@k.transpose(0, 1)", "@functools.cache", "2026-11-20-15"]
)
def test_code_and_dates_identify_nobody(text: str) -> None:
    assert find(text) is None
    assert cut(text) == text


@pytest.mark.parametrize("piece", ["a.", "a@a", "a-", ".a", "/home/", "a@b."])
def test_a_text_takes_no_longer_than_it_is_long(piece: str) -> None:
    # What takes the square of the length would take days.
    code = f"from benchbook.content.identity import cut; cut({piece!r} * 2_000_000)"
    subprocess.run([sys.executable, "-c", code], check=True, timeout=120)


def test_what_is_longer_than_any_address_is_none() -> None:
    assert find(f"{'x' * 64}@example.org") is not None
    assert find(f"{'x' * 65}@example.org") is None


PIECES = st.sampled_from(["/home/", "/root", "GPU-", "a1b2c3d4", "-", "ab12", "@", ".", "org", "/", " ", "x"])


@given(st.lists(PIECES | st.characters(), max_size=20).map("".join))
def test_nothing_that_was_cut_is_refused(text: str) -> None:
    assert find(cut(text)) is None
