"""Keep what a cell prints: bounded, and without anything that tells whose machine it ran on."""

from __future__ import annotations

import getpass
import os
import re
import site
import socket
import sys
import sysconfig
from collections.abc import Callable, Iterable
from pathlib import Path

from benchbook.content.identity import cut

HEAD, TAIL = 48 * 1024, 16 * 1024


class Bounded:
    """The beginning and the end of a stream of bytes, however long it is."""

    def __init__(self, head: int = HEAD, tail: int = TAIL) -> None:
        self._head_limit, self._tail_limit = head, tail
        self._head, self._tail = bytearray(), bytearray()
        self.total = 0

    def add(self, data: bytes) -> None:
        """Take in what came next."""
        self.total += len(data)
        room = self._head_limit - len(self._head)
        self._head += data[:room]
        self._tail += data[max(room, 0) :]
        if len(self._tail) > 2 * self._tail_limit:
            del self._tail[: -self._tail_limit]

    def text(self) -> str:
        """What is kept, saying how much is not."""
        tail = self._tail[-self._tail_limit :]
        left_out = self.total - len(self._head) - len(tail)
        if left_out <= 0:
            return (self._head + tail).decode("utf-8", "replace")
        note = f"\n[... {left_out} of {self.total} bytes left out ...]\n"
        return self._head.decode("utf-8", "replace") + note + tail.decode("utf-8", "replace")


class Scrubber:
    """Cut from a text what identifies a person or a machine.

    Parameters:
        root: The project; paths below it become relative to it.
        folders: The run's own folders, which become `.`.
        host: This machine's name.
        user: This user's name.
    """

    def __init__(
        self, root: str, folders: Iterable[str] = (), host: str | None = None, user: str | None = None
    ) -> None:
        pairs = [(root + "/", ""), (root, ".")]
        for folder in folders:
            pairs += [(folder + "/", ""), (folder, ".")]
        libraries = {sysconfig.get_path("purelib"), sysconfig.get_path("platlib"), *site.getsitepackages()}
        # An environment may lie over another, whose packages its path names alone.
        libraries |= {folder for folder in sys.path if Path(folder).name == "site-packages"}
        pairs += [(folder, "site-packages") for folder in libraries if folder]
        pairs += [
            (sysconfig.get_path("stdlib"), "python"),
            (sys.prefix, "python"),
            (sys.base_prefix, "python"),
        ]
        pairs += [(str(Path.home()), "~"), (os.path.expanduser("~"), "~")]
        # A path inside another must go first, and "/" (the home of some containers) never.
        self._pairs = sorted({pair for pair in pairs if len(pair[0]) > 1}, key=lambda pair: -len(pair[0]))
        words = {_name(host, socket.gethostname): "localhost", _name(user, getpass.getuser): "user"}
        self._words = [
            (re.compile(rf"(?<![\w.-]){re.escape(word)}(?![\w-])"), replacement)
            for word, replacement in words.items()
            # Short and common names are also words of their own ("vm", "root"), which tell nothing.
            if len(word) > 3 and word not in {"root", "user", "localhost", "runner", "ubuntu", "debian"}
        ]

    def __call__(self, text: str) -> str:
        """`text` without them."""
        for path, replacement in self._pairs:
            text = text.replace(path, replacement)
        for pattern, replacement in self._words:
            text = pattern.sub(replacement, text)
        return cut(text)


def _name(given: str | None, ask: Callable[[], str]) -> str:
    if given is not None:
        return given
    try:
        return ask()
    except (OSError, KeyError):
        return ""
