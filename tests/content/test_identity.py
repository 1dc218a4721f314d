"""What could identify a person or a machine is cut before it is recorded, and refused where it was not."""

from __future__ import annotations

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


PIECES = st.sampled_from(["/home/", "/root", "GPU-", "a1b2c3d4", "-", "ab12", "@", ".", "org", "/", " ", "x"])


@given(st.lists(PIECES | st.characters(), max_size=20).map("".join))
def test_nothing_that_was_cut_is_refused(text: str) -> None:
    assert find(cut(text)) is None
