"""The foot of a page that shows records: every script behind it, to read, to run and to check."""

from __future__ import annotations

from html import escape

from benchbook.content.problems import BenchbookError
from benchbook.languages.formatting import NO_BREAK_SPACE
from benchbook.rendering.context import Build
from benchbook.rendering.downloads import colab_address, notebook_path, record_path, script_path
from benchbook.rendering.provenance import machine_short


def append_files(build: Build, html: str) -> str:
    """`html` with a list of the guide's scripts and of those it shows of others, each with its downloads."""
    page, language = build.here, build.here.language
    # What shows something of guides leaves their files to them.
    if not page.scripts or page.name in ("index", "claims") or page.name != page.guide:
        return html
    items = ""
    own = {script for script in build.library.project.scripts() if script.startswith(f"{page.guide}/")}
    for script in sorted(page.scripts | own):
        machines = build.library.machines_with(script)
        links = [
            (language.text("script"), script_path(script)),
            (language.text("notebook" if machines else "notebook_without_outputs"), notebook_path(script)),
        ]
        colab = _colab(build, script)
        for machine in machines:
            text = language.text("raw_record")
            if len(machines) > 1:
                text += language.text("colon") + machine_short(machine, language)
            links.append((text, record_path(machine.name, script)))
        shown = f"{NO_BREAK_SPACE}· ".join(
            f'<a href="{escape(page.root + to)}" download><bdi>{escape(text)}</bdi></a>' for text, to in links
        )
        if colab:
            opened = language.words(language.text("colab"))
            shown += f'{NO_BREAK_SPACE}· <a href="{escape(colab)}">{opened}</a>'
        if not machines:
            shown += f"{NO_BREAK_SPACE}· {escape(language.text('not_measured'))}"
        items += f'<li><code lang="en" dir="ltr">{escape(script)}</code> {shown}</li>'
    title = escape(language.text("fact_files"))
    return (
        f'{html}<section class="bb-files" aria-label="{title}" data-pagefind-ignore>'
        f"<p>{title}</p><ul>{items}</ul></section>"
    )


def _colab(build: Build, script: str) -> str | None:
    """Where Colab opens the notebook of `script`; None where it cannot, or there is none."""
    try:
        return colab_address(build.repository, build.library.script(script))
    except BenchbookError:
        return None  # reported with the pages and by `benchbook check`
