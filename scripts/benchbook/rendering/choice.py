"""The two choices of a reader: on which machine measured, and whether it fits a GPU of their own.

What the page of another machine shows, and where a number is from, is fetched once it is asked for. All of it
is HTML, made here by what makes the page's own: a script only puts it in its place. A file holds

    blocks   by the key of a block (`data-bb`): what the machine changes in it, its parts by `data-part`
    values   by the key of a value: its inside, the line and the rows of its details, the key of its origin
    facts    by the key of a block: rows of its details that its origin does not have
    origins  by key (`data-origin`): the other rows of the details

What the page shows of the machine itself has no parts here. `ROOT` stands for the way to the site's root.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from html import escape
from typing import Any

from benchbook.languages.language import Language
from benchbook.query.library import Machine
from benchbook.rendering.context import Build, PageContext
from benchbook.rendering.gpu_field import STRINGS as GPU_STRINGS
from benchbook.rendering.gpu_field import render_gpu_field
from benchbook.rendering.provenance import machine_short, marked_title

FOLDER = "assets/data"
CALCULATOR = "memory_calculator.md"


def data_folder(page: str, language: str) -> str:
    """Where the files of `page` in `language` lie, from the root of the site, with its slash."""
    return f"{FOLDER}/{page}/{language}/"


def data_files(page: str, language: str, data: Mapping[str, Mapping[str, Any]]) -> dict[str, str]:
    """The files of a page by their path below `FOLDER`.

    Parameters:
        page: Its file within its language, without the ending.
        language: The language of its text.
        data: By machine and section, JSON by key.
    """
    return {
        f"{page}/{language}/{machine}.json": _text(sections) for machine, sections in sorted(data.items())
    }


def _text(sections: Mapping[str, Any]) -> str:
    return json.dumps(sections, ensure_ascii=False, separators=(",", ":"), sort_keys=True) + "\n"


# Texts that the scripts of a page need in its language.
_STRINGS = (
    "provenance",
    "close",
    "copy_link",
    "sort",
    "fits",
    "fits_not",
    *GPU_STRINGS,
    "my_gpu_fp16",
    "my_gpu_cpu",
)
_AFTER_ANSWER = re.compile(r"</h1>\s*(?:<p\b.*?</p>)?", re.DOTALL)


def insert_choice(build: Build, html: str) -> str:
    """`html` with the choices below the page's heading and its answer, where it shows any record.

    Below a form that asks for the GPU itself, they stand above the part that shows the first record.
    """
    page = build.here
    if not page.machines:
        return html
    choice = _render_choice(build, page)
    if page.asks_gpu and (place := html.rfind("<h3", 0, max(0, html.find("data-machine=")))) >= 0:
        return html[:place] + choice + html[place:]
    found = _AFTER_ANSWER.search(html)
    return choice + html if found is None else html[: found.end()] + choice + html[found.end() :]


def _render_choice(build: Build, page: PageContext) -> str:
    """The controls; without JavaScript they say which machine is shown, and no more."""
    language = page.language
    reference = _reference(build, page)
    machines = _ordered(page, reference)
    shown = page.machines[reference]
    label = escape(language.text("numbers_from"))
    elsewhere = ""
    if len(machines) > 1:
        options = "".join(_option(one, one == shown, language) for one in machines)
        control = (
            f'<label for="bb-machine">{label}</label> '
            f'<span class="bb-plain"><bdi>{escape(marked_title(shown, language))}</bdi></span>'
            f'<select id="bb-machine" class="bb-live" dir="auto" autocomplete="off">{options}</select>'
        )
        told = language.text("numbers_elsewhere", machine=machine_short(shown, language))
        elsewhere = f'<p id="bb-elsewhere" hidden>{language.words(told)}</p>'
    else:
        control = f"<span>{label}</span> <bdi>{escape(marked_title(shown, language))}</bdi>"
    if not any(one.has_accelerator and one.measured and not one.published for one in machines):
        control += f' <span class="bb-none">{language.words(language.text("not_on_gpu"))}</span>'
    gpu = ""
    if page.fits and not page.asks_gpu:
        field = render_gpu_field("bb-gpu", language, "bb-gpu-rule")
        gpu = (
            f'<p class="bb-live">{field}{_calculator(build)}</p>'
            f'<p id="bb-gpu-rule" class="bb-live" hidden>{language.words(language.text("fits_rule"))}</p>'
        )
    name = escape(language.text("choices"))
    return (
        f'<div class="bb-choice" role="group" aria-label="{name}" data-pagefind-ignore>'
        f"<p>{control}</p>{elsewhere}{gpu}</div>"
    )


def _calculator(build: Build) -> str:
    """The way to what the GPU that is chosen has room for, where the handbook has a calculator."""
    if not (build.library.project.docs / "en" / CALCULATOR).is_file():
        return ""
    language = build.here.language
    href, text = escape(build.here.address(CALCULATOR)), language.words(language.text("calc_fitting"))
    return f' <a id="bb-gpu-fitting" href="{href}" hidden>{text}</a>'


def page_settings(build: Build, page: PageContext) -> dict[str, Any]:
    """What the scripts of a page must know, as JSON."""
    language = page.language
    reference = _reference(build, page)
    return {
        "language": language.code,
        "root": page.root,
        "data": page.root + data_folder(page.name, language.code),
        "gpus": page.root + "assets/gpus.json",
        "reference": reference,
        "machines": [machine.name for machine in _ordered(page, reference)],
        # Whose bytes a GPU holds too: a CPU has other kernels.
        "accelerated": [one.name for one in _ordered(page, reference) if one.has_accelerator],
        "strings": {name: language.text(name) for name in _STRINGS},
    }


def _option(machine: Machine, selected: bool, language: Language) -> str:
    chosen = " selected" if selected else ""
    return (
        f'<option value="{escape(machine.name)}"{chosen}>{escape(marked_title(machine, language))}</option>'
    )


def _reference(build: Build, page: PageContext) -> str:
    name = build.library.reference_machine(page.guide)
    if name in page.machines:
        return name
    # Those with records first; a page may show nothing but predictions for a GPU that has none.
    known = (*build.library.machines, *page.machines)
    return next((other for other in known if other in page.machines), "")


def _ordered(page: PageContext, reference: str) -> list[Machine]:
    def place(machine: Machine) -> tuple[bool, bool, bool, str]:
        return machine.name != reference, machine.published, not machine.measured, machine.name

    return sorted((one for one in page.machines.values() if _offered(page, one, reference)), key=place)


def _offered(page: PageContext, machine: Machine, reference: str) -> bool:
    """Whether choosing `machine` shows more of it than stands on the page anyhow."""
    data = page.data.get(machine.name, {})
    differs = any("parts" in value and "rows" in value for value in data.get("values", {}).values())
    return machine.name == reference or "blocks" in data or differs
