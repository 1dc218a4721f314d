"""What Python-Markdown calls: the fences that show records and claims, and the inline `value`."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from functools import cache
from html import escape
from typing import TYPE_CHECKING, Any

from markdown import Markdown

from benchbook.content.fence_names import ERROR_FIELD
from benchbook.content.problems import BenchbookError, Problem
from benchbook.content.references import UnresolvedError
from benchbook.content.safe_html import accept_options
from benchbook.rendering import (
    cells,
    charts,
    claim_list,
    claims,
    error_texts,
    tables,
    traces,
    tradeoffs,
    values,
)
from benchbook.rendering.calculator_form import render_calculator
from benchbook.rendering.context import Build, current
from benchbook.rendering.provenance import ROOT
from benchbook.rendering.specs import COUNTED

if TYPE_CHECKING:
    from benchbook.content.readings import Slot

INLINE = "value"
# What MkDocs calls the part of Markdown that makes addresses of links to pages.
LINKS = "relpath"
_SLOT = r'<(span|div) data-bb-slot="{}-(\d+)"></\1>([.,:;!?)،؛؟、。，．：；！？）」』】》”’]+)?'


def cell(source: str, language: str, css_class: str, options: dict[str, Any], md: Markdown, **_: Any) -> str:
    """The HTML of a `cell` fence."""
    return _render("cell", source, options, lambda build: cells.render_cell(build, source, options, md))


def table(source: str, language: str, css_class: str, options: dict[str, Any], md: Markdown, **_: Any) -> str:
    """The HTML of a `table` fence."""
    return _render("table", source, options, lambda build: tables.render_table(build, source))


def chart(source: str, language: str, css_class: str, options: dict[str, Any], md: Markdown, **_: Any) -> str:
    """The HTML of a `chart` fence."""
    return _render("chart", source, options, lambda build: charts.render_chart(build, source))


def tradeoff(
    source: str, language: str, css_class: str, options: dict[str, Any], md: Markdown, **_: Any
) -> str:
    """The HTML of a `tradeoff` fence."""
    return _render("tradeoff", source, options, lambda build: tradeoffs.render_tradeoff(build, source))


def trace(source: str, language: str, css_class: str, options: dict[str, Any], md: Markdown, **_: Any) -> str:
    """The HTML of a `trace` fence."""
    return _render("trace", source, options, lambda build: traces.render_trace(build, source))


def claim(source: str, language: str, css_class: str, options: dict[str, Any], md: Markdown, **_: Any) -> str:
    """The HTML of a `claim` fence."""
    return _render(
        "claim", source, options, lambda build: claims.render_claim(build, source, options, _inside(md))
    )


def claim_listing(
    source: str, language: str, css_class: str, options: dict[str, Any], md: Markdown, **_: Any
) -> str:
    """The HTML of a `claims` fence, which lists all claims."""
    return _render(
        "claims", source, options, lambda build: claim_list.render_claims(build, source, _inside(md))
    )


def calculator(
    source: str, language: str, css_class: str, options: dict[str, Any], md: Markdown, **_: Any
) -> str:
    """The HTML of a `calculator` fence."""
    return _render("calculator", source, options, lambda build: render_calculator(build, source))


def error_field(
    source: str, language: str, css_class: str, options: dict[str, Any], md: Markdown, **_: Any
) -> str:
    """The HTML of an `error-field` fence."""
    return _render(ERROR_FIELD, source, options, lambda build: error_texts.render_field(build, source))


def value(source: str, language: str, css_class: str, md: Markdown) -> str:
    """The HTML of an inline `#!value ...`."""
    return _render("value", source, {}, lambda build: values.render_value(build, source))


def custom_fences() -> list[dict[str, Any]]:
    """The entries for `pymdownx.superfences: custom_fences`."""
    formats = {"cell": cell, "table": table, "chart": chart, "claim": claim, "claims": claim_listing}
    formats |= {
        "tradeoff": tradeoff,
        "trace": trace,
        "calculator": calculator,
        ERROR_FIELD: error_field,
    }
    return [
        {"name": name, "class": name, "format": render, "validator": accept_options}
        for name, render in formats.items()
    ]


def custom_inline() -> list[dict[str, Any]]:
    """The entries for `pymdownx.inlinehilite: custom_inline`."""
    return [{"name": INLINE, "class": INLINE, "format": value}]


@cache
def _words() -> Markdown:
    """What makes HTML of the words within a claim: plain Markdown with inline values."""
    inline = "pymdownx.inlinehilite"
    return Markdown(extensions=[inline], extension_configs={inline: {"custom_inline": custom_inline()}})


def _inside(md: Markdown) -> Markdown:
    """The Markdown for words within a fence of `md`, whose links lead where those of the page do."""
    inner = _words()
    if LINKS in md.treeprocessors:
        inner.treeprocessors.register(md.treeprocessors[LINKS], LINKS, 0)
    return inner


def _render(kind: str, source: str, options: Mapping[str, str], render: Callable[[Build], str]) -> str:
    """What `render` makes, or a box in its place; a problem is kept for the end of the build.

    superfences and inlinehilite swallow exceptions and would print the reference instead, so none may
    leave here: one that is not a problem of the page is raised once the page is rendered.
    """
    build = current()
    stated = kind, dict(options), source
    inline = kind == INLINE
    try:
        try:
            # Of a page that shows too much, the first fence that did says so.
            full = kind in COUNTED and build.here.count.is_full
            build.here.count.name(kind, source)
            return _slot(build, "" if full else render(build), stated)
        except UnresolvedError as error:
            # Loads a second Markdown parser, which a page in order does not need.
            from benchbook.rendering.places import locate

            problems = [error.at(build.here.path, line) for line in locate(build, kind, source)]
    except BenchbookError as error:
        problems = list(error.problems)
    except Exception as error:
        build.failures.append(error)
        return ""
    build.problems.update(problems)
    return _slot(build, _box(build, problems, inline), stated)


def _slot(build: Build, html: str, stated: Slot) -> str:
    """A place for `html`, which it takes once nothing that reads whole pages has to read it.

    Its number is behind a word of this build's own: the text of a page cannot name a place.
    """
    number = f"{build.mark}-{len(build.slots)}"
    build.slots.append(html)
    build.stated[number] = stated
    name = "span" if stated[0] == INLINE else "div"
    return f'<{name} data-bb-slot="{number}"></{name}>'


def fill(build: Build, html: str) -> str:
    """`html` with what belongs into its slots, and the way to the root of the site."""
    slot = re.compile(_SLOT.format(build.mark))

    def filled(match: re.Match[str]) -> str:
        content = slot.sub(filled, build.slots[int(match[2])])
        # A browser may break a line after a button, even before a mark that no line may begin with.
        return f'<span class="bb-kept">{content}{match[3]}</span>' if match[3] else content

    return slot.sub(filled, html).replace(ROOT, escape(build.here.root))


def _box(build: Build, problems: list[Problem], inline: bool) -> str:
    # Not `text`, which raises: a language that lacks the word is itself a problem to be shown here.
    title = escape(str(build.here.language.strings.get("problem", "Problem")))
    text = "; ".join(escape(str(problem)) for problem in problems)
    if inline:
        return (
            f'<span class="bb-problem" role="alert">{title}: <code lang="en" dir="ltr">{text}</code></span>'
        )
    return f'<div class="bb-problem" role="alert"><p>{title}</p><code lang="en" dir="ltr">{text}</code></div>'
