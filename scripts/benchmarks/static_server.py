"""Serves a built site as a static host does: below a path, compressed, with its own 404 page."""

from __future__ import annotations

import gzip
import mimetypes
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from functools import lru_cache, partial
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

COMPRESSED = ("text/", "application/javascript", "application/json", "application/xml", "image/svg+xml")
_TYPES = {".js": "text/javascript", ".ipynb": "application/json", ".svg": "image/svg+xml"}


class Handler(BaseHTTPRequestHandler):
    """Answers GET and HEAD from one folder."""

    protocol_version = "HTTP/1.1"

    def __init__(self, *arguments: Any, site: Path, path: str) -> None:
        self._site = site.resolve()
        self._prefix = path
        super().__init__(*arguments)

    def do_GET(self) -> None:
        """Send a file, a redirection to a folder's address, or the 404 page."""
        path = unquote(urlsplit(self.path).path)
        target = self._target(path)
        if target is not None and target.is_dir():
            if not path.endswith("/"):
                self._send(HTTPStatus.MOVED_PERMANENTLY, b"", {"Location": path + "/"})
                return
            target /= "index.html"
        if target is None or not target.is_file():
            self._send_file(HTTPStatus.NOT_FOUND, self._site / "404.html")
        else:
            self._send_file(HTTPStatus.OK, target)

    def do_HEAD(self) -> None:
        """Send the same without its body."""
        self.do_GET()

    def log_message(self, *_: object) -> None:
        """Say nothing."""

    def _target(self, path: str) -> Path | None:
        if not path.startswith(self._prefix):
            return None
        target = (self._site / path[len(self._prefix) :]).resolve()
        return target if target.is_relative_to(self._site) else None

    def _send_file(self, status: HTTPStatus, file: Path) -> None:
        kind = _TYPES.get(file.suffix) or mimetypes.guess_type(file.name)[0] or "application/octet-stream"
        headers = {"Content-Type": f"{kind}; charset=utf-8" if kind.startswith(COMPRESSED) else kind}
        headers["Cache-Control"] = "max-age=600"
        if kind.startswith(COMPRESSED) and "gzip" in self.headers.get("Accept-Encoding", ""):
            body = _compressed(file, file.stat().st_mtime_ns)
            self._send(status, body, {**headers, "Content-Encoding": "gzip"})
        else:
            self._send(status, file.read_bytes() if file.is_file() else b"", headers)

    def _send(self, status: HTTPStatus, body: bytes, headers: dict[str, str]) -> None:
        self.send_response(status)
        for name, value in {**headers, "Content-Length": str(len(body))}.items():
            self.send_header(name, value)
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)


@lru_cache(maxsize=512)
def _compressed(file: Path, _changed: int) -> bytes:
    return gzip.compress(file.read_bytes(), mtime=0)


@contextmanager
def serving(site: Path, path: str = "/handbook/") -> Iterator[str]:
    """Serve `site` below `path` on a free port of this machine; gives the address of its start page."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), partial(Handler, site=site, path=path))
    server.daemon_threads = True
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}{path}"
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
