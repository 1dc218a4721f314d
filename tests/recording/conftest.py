"""What tests of recording share: no variable of whoever runs them that scripts would be kept from."""

from __future__ import annotations

import os

import pytest

from benchbook.machines.circumstances import withheld


@pytest.fixture(autouse=True)
def _only_what_scripts_inherit(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in withheld(os.environ):
        monkeypatch.delenv(name)
