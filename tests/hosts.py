"""A stand-in for the host of the repository, which keeps what it is asked and answers as told."""

from __future__ import annotations

import contextlib
import json
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any


@dataclass
class FakeHost:
    """What it answers by method and path, with the query or without, and what it was asked."""

    answers: dict[tuple[str, str], Any]
    asked: list[tuple[str, str, Any]] = field(default_factory=list)
    tokens: set[str] = field(default_factory=set)
    url: str = ""


@contextlib.contextmanager
def serving(answers: dict[tuple[str, str], Any]) -> Iterator[FakeHost]:
    """Serve `answers` on this machine until the block ends."""
    host = FakeHost(answers)

    class Handler(BaseHTTPRequestHandler):
        def answer(self) -> None:
            size = int(self.headers.get("Content-Length") or 0)
            content = json.loads(self.rfile.read(size)) if size else None
            host.asked.append((self.command, self.path, content))
            host.tokens.add(self.headers["Authorization"])
            bare = host.answers.get((self.command, self.path.partition("?")[0]))
            found = host.answers.get((self.command, self.path), bare)
            self.send_response(404 if found is None else 200)
            self.end_headers()
            self.wfile.write(json.dumps(found).encode())

        do_GET = do_POST = do_PATCH = answer  # noqa: N815

        def log_message(self, *_: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    host.url = f"http://127.0.0.1:{server.server_port}"
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        yield host
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
