"""Templates: those of our own blocks, and the theme's, compiled once for all languages."""

from __future__ import annotations

import os
from functools import cache
from pathlib import Path

from jinja2 import BytecodeCache, Environment, FileSystemLoader, Template
from jinja2.bccache import Bucket
from mkdocs.theme import Theme


@cache
def template(name: str) -> Template:
    """A template that lies beside this file; what it is given is escaped unless it is markup."""
    loader = FileSystemLoader(Path(__file__).parent)
    return Environment(loader=loader, autoescape=True, trim_blocks=True).get_template(name)


class TemplateCache(BytecodeCache):
    """Compiled templates, kept in memory from one language, and one save of a page, to the next.

    Attributes:
        names: The files of the folders that one build has looked through.
    """

    def __init__(self) -> None:
        self.names: dict[tuple[str, ...], list[str]] = {}
        self._codes: dict[str, bytes] = {}

    def load_bytecode(self, bucket: Bucket) -> None:
        """Fill `bucket` if its template is known and unchanged."""
        if bucket.key in self._codes:
            bucket.bytecode_from_string(self._codes[bucket.key])

    def dump_bytecode(self, bucket: Bucket) -> None:
        """Keep what `bucket` holds."""
        self._codes[bucket.key] = bucket.bytecode_to_string()


class Templates(FileSystemLoader):
    """The files of a theme but for hidden folders, which hold Material's icons.

    MkDocs lists a theme's files to copy them, once per language, and skips what is hidden only afterwards;
    walking fourteen thousand icons takes longer than rendering a dozen pages.
    """

    def __init__(self, folders: list[str], cache: TemplateCache) -> None:
        super().__init__(folders)
        self._names = cache.names

    def list_templates(self) -> list[str]:
        """The names of all files that are not hidden, sorted; looked for once in a build."""
        key = tuple(self.searchpath)
        if key not in self._names:
            self._names[key] = self._list()
        return self._names[key]

    def _list(self) -> list[str]:
        found: set[str] = set()
        for folder in self.searchpath:
            for here, folders, files in os.walk(folder):
                folders[:] = [name for name in folders if not name.startswith(".")]
                found.update(Path(here, name).relative_to(folder).as_posix() for name in files)
        return sorted(found)


def quicken(theme: Theme, cache: TemplateCache) -> None:
    """Make `theme` list its files and compile its templates as above, each value escaped."""

    def get_env() -> Environment:
        environment = type(theme).get_env(theme)
        environment.loader = Templates(theme.dirs, cache)
        # What a template puts out is text, unless it says that it is HTML: names, addresses and ids are not.
        environment.autoescape = True
        environment.bytecode_cache = cache
        return environment

    # MkDocs asks the theme for its environment anew in each build and has no event before it is used.
    vars(theme)["get_env"] = get_env
