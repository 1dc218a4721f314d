"""What fences must know and Python-Markdown cannot tell them: the build, the page, its language."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from secrets import token_hex
from typing import TYPE_CHECKING, Any

from benchbook.content.problems import Problem
from benchbook.content.safe_html import SLOT, WRITE_MARKDOWN, places_in, unsafe_parts, unsafe_words
from benchbook.languages.language import Language
from benchbook.query.library import Cache, Library, Machine
from benchbook.query.measurements import Predicted, RecordedVariant
from benchbook.rendering.provenance import Commits, Origin, origin, origin_key, render_rows
from benchbook.rendering.specs import PageCount

if TYPE_CHECKING:
    from benchbook.content.readings import Slot


@dataclass(frozen=True)
class Rendering:
    """What a block shows on one machine, as HTML.

    Parameters:
        parts: The inside of each element that differs between machines, by its `data-part`; of the whole
            block by "".
        attributes: Those of the block's own element that differ; None for one that is not there.
    """

    parts: Mapping[str, str]
    attributes: Mapping[str, str | None] = field(default_factory=dict)


@dataclass
class PageContext:
    """The page that is being rendered.

    Parameters:
        path: Its Markdown file, relative to the project.
        guide: The guide it is, in whatever language.
        language: The language its text is in, which is English where a translation is missing.
        root: The way from the page to the root of the site, empty or ending in a slash.
        address: The address, from the page, of what a link of its Markdown names.
        machines: The machines, by name, that something on the page was recorded on, or predicted for.
        scripts: The scripts that something on the page comes from.
        claims: The claims that it has shown so far.
        cells: How many cells it has shown so far.
        count: What its fences have asked for so far.
        fits: Whether it shows memory that a GPU can hold or not.
        asks_gpu: Whether it asks for the reader's GPU in a form of its own.
        data: What a script of the page fetches: by machine and section, JSON by key.
        values: The values whose default is on the reference machine: what says so elsewhere, by key.
    """

    path: str
    guide: str
    language: Language
    root: str
    address: Callable[[str], str] = str
    machines: dict[str, Machine] = field(default_factory=dict)
    scripts: set[str] = field(default_factory=set)
    claims: set[str] = field(default_factory=set)
    cells: int = 0
    count: PageCount = field(default_factory=PageCount)
    fits: bool = False
    asks_gpu: bool = False
    data: dict[str, dict[str, dict[str, Any]]] = field(default_factory=dict)
    values: dict[str, str] = field(default_factory=dict)

    @property
    def name(self) -> str:
        """Its file within its language, without the ending."""
        return self.path.split("/", 2)[2].removesuffix(".md")


# By the key of the origin and language.
_ORIGINS = Cache[tuple[str, str], Origin]("origins")
_ROWS = Cache[tuple[str, str], str]("rows of origins")


@dataclass
class Build:
    """One build of the site, all languages together.

    Parameters:
        library: Scripts and records.
        languages: By code.
        commits: What git knows of the records.
        problems: What is wrong, so far.
        failures: What went wrong in this program itself while it rendered the current page.
        rendered: What is the same in every language, by what it was made from, so that it is made once.
        repository: The address of the repository, where there is one.
        slots: What stands in the slots of the current page, by number.
        stated: What the page said there, by the value of the slot's attribute.
        mark: How the values of slots begin in this build, which no text of a page can know.
        page: The page that is being rendered, if any.
    """

    library: Library
    languages: Mapping[str, Language]
    commits: Commits
    problems: set[Problem] = field(default_factory=set)
    failures: list[Exception] = field(default_factory=list)
    rendered: dict[str, str] = field(default_factory=dict)
    repository: str = ""
    slots: list[str] = field(default_factory=list)
    stated: dict[str, Slot] = field(default_factory=dict)
    mark: str = field(default_factory=lambda: token_hex(8))
    page: PageContext | None = None

    def once(self, made_from: object, render: Callable[[], str]) -> str:
        """What `render` gives, asked for once in all languages for what is made from the same."""
        key = repr(made_from)
        if key not in self.rendered:
            self.rendered[key] = render()
        return self.rendered[key]

    def refuse_unsafe(self, html: str) -> None:
        """Take for a problem whatever no page may hold in what Markdown made of words of the current one."""
        found = dict.fromkeys(what for _, what in unsafe_parts(html))
        # Read as HTML only where something names a place that is not of this build: most of what is long is.
        words = html.lower()
        if words.count(SLOT) > words.count(f'{SLOT}="{self.mark}-') and any(
            not value.startswith(f"{self.mark}-") for value in places_in(html)
        ):
            found[f"{SLOT}="] = None
        if not found:
            return
        path = self.library.project.root / self.here.path
        # The lists of claims stand in no file.
        text = path.read_text("utf-8").lower().splitlines() if path.is_file() else []
        for what in found:
            # Written with entities, it stands nowhere as the browser reads it.
            line = next(
                (number for number, one in enumerate(text, 1) if what.strip("<>=.#").lower() in one), 1
            )
            self.problems.add(Problem(self.here.path, line, unsafe_words(what), WRITE_MARKDOWN))

    def keep(self, section: str, key: str, machine: Machine, tree: Any) -> None:
        """Remember what a script of the current page fetches under `key` for `machine`.

        Parameters:
            section: "origins", "values", "blocks" or "facts".
            key: The same in every language.
            machine: Whose record it is.
            tree: JSON, in the page's language.
        """
        self.here.data.setdefault(machine.name, {}).setdefault(section, {})[key] = tree

    def keep_block(self, key: str, machine: Machine, rendering: Rendering) -> None:
        """Remember what the block `key` of the current page shows where a reader chooses `machine`."""
        self.here.machines[machine.name] = machine
        attributes = {"data-machine": machine.name, **rendering.attributes}
        self.keep("blocks", key, machine, {"attributes": attributes, "parts": rendering.parts})

    def keep_origin(
        self, sources: Sequence[RecordedVariant], predictions: Sequence[Predicted] = (), offered: bool = True
    ) -> tuple[str, Origin]:
        """Remember where `sources` and `predictions`, variants on one machine, come from: key and origin."""
        self.here.scripts.update(source.script.reference for source in sources)
        self.here.scripts.update(one.script.reference for one in predictions)
        key, language = origin_key(sources, predictions), self.here.language
        found = self.library.once(
            _ORIGINS,
            (key, language.code),
            lambda: origin(sources, predictions, language, self.library.project, self.commits),
        )
        machine = sources[0].machine if sources else predictions[0].machine
        if offered:
            self.here.machines[machine.name] = machine
        self.keep("origins", key, machine, self._rows(key, found))
        return key, found

    def _rows(self, key: str, found: Origin) -> str:
        language = self.here.language
        return self.library.once(_ROWS, (key, language.code), lambda: render_rows(found.rows, language))

    @property
    def here(self) -> PageContext:
        """The current page.

        Raises:
            RuntimeError: None is being rendered.
        """
        if self.page is None:
            raise RuntimeError("no page is being rendered")
        return self.page


_builds: list[Build] = []


def activate(build: Build | None) -> None:
    """Make `build` the one the fences belong to, or none."""
    _builds[:] = [build] if build else []


def current() -> Build:
    """The build that the fences belong to.

    Raises:
        RuntimeError: There is none: the benchbook plugin is not at work.
    """
    if not _builds or _builds[0].page is None:
        raise RuntimeError(
            "this fence needs the benchbook plugin: add `benchbook` to the plugins of mkdocs.yml"
        )
    return _builds[0]
