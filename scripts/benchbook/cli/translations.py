"""The commands about languages: each hands over to the module that does its work."""

from __future__ import annotations

import datetime
import json
from pathlib import Path
from typing import Annotated

import typer

from benchbook.content.project import find_project
from benchbook.content.records import write_text, writing

translations = typer.Typer(no_args_is_help=True, help="How the translations stand to the English pages.")


@translations.command("status")
def translations_status(as_json: Annotated[bool, typer.Option("--json", help="as JSON")] = False) -> None:
    """List pages and languages: translated, reviewed, and which sections English has left behind."""
    from benchbook.translations.accept import print_states, translation_states, untranslated_lines

    project = find_project()
    states = translation_states(project)
    if as_json:
        typer.echo(json.dumps([state.as_dict() for state in states], indent=2))
    else:
        print_states(states, untranslated_lines(project))


@translations.command("accept")
def translations_accept(
    target: Annotated[
        str | None, typer.Argument(metavar="[PAGE|LANGUAGE]", help="ja/index.md, or ja")
    ] = None,
    section: Annotated[str | None, typer.Option(help="only the section with this id")] = None,
    all_languages: Annotated[
        bool, typer.Option("--all-languages", help="PAGE in every language: a change without meaning")
    ] = False,
) -> None:
    """Record that translations follow the English sections as they stand."""
    from benchbook.translations.accept import accept

    if target is None and not all_languages:
        raise typer.BadParameter("name a page or a language, or say --all-languages")
    for name in accept(find_project(), target, section, all_languages):
        typer.echo(f"accepted {name}")


@translations.command("review")
def translations_review(
    page: Annotated[str, typer.Argument(help="ja/index.md")],
    done: Annotated[str | None, typer.Option(metavar="SECTION", help="the section that was read")] = None,
    by: Annotated[str, typer.Option(metavar="NAME", help="who read it")] = "",
    native: Annotated[str, typer.Option(metavar="LANGUAGE", help="their own language, such as ja")] = "",
    out: Annotated[Path, typer.Option(help="where the sheet is written")] = Path("review.html"),
) -> None:
    """Write a sheet for one who reviews a translation, or record a section that they have read."""
    from benchbook.translations.reviews import record_review, translated_document

    project = find_project()
    if done is None:
        from benchbook.rendering.review_sheet import review_sheet

        sheet = review_sheet(project, translated_document(project, page))
        with writing(str(out)):
            write_text(out, sheet)
        typer.echo(f"wrote {out}: open it in a browser")
        return
    if not by or not native:
        raise typer.BadParameter(
            "a review says who read the section, and which language is theirs: --by, --native"
        )
    today = datetime.datetime.now(datetime.UTC).date()
    typer.echo(f"reviewed {record_review(project, page, done, by, native, today)}")


new = typer.Typer(no_args_is_help=True, help="Begin something.")


@new.command("language")
def new_language_(code: Annotated[str, typer.Argument(help="its code, such as fr or pt-BR")]) -> None:
    """Make a language that builds at once, in English until it is translated."""
    from benchbook.translations.new_language import new_language

    for path in new_language(find_project(), code):
        typer.echo(f"wrote {path}")
