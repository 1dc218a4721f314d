"""Find the browser that tests and benchmarks drive, and start it so that it asks nothing of the network."""

from __future__ import annotations

import os
import shutil

FLAGS = (
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
)


# The same browser without windows, which takes two thirds of the time.
SHELLS = ("chromium-headless-shell",)
BROWSERS = ("chromium", "chromium-browser", "google-chrome")


def find_chromium(shell: bool = True) -> str:
    """The path of the Chromium that CHROMIUM names, else of one on the path.

    Parameters:
        shell: Whether one that never shows a window will do.

    Raises:
        FileNotFoundError: There is none.
    """
    names = [os.environ.get("CHROMIUM", ""), *(SHELLS if shell else ()), *BROWSERS]
    for name in filter(None, names):
        path: str | None = shutil.which(name)
        if path is not None:
            return path
    raise FileNotFoundError("no Chromium: run `make chromium`, or set CHROMIUM to one")
