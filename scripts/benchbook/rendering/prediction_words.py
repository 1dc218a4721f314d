"""What a page says of predictions: that nothing was measured, what was asked, and of which predictor."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from html import escape
from typing import Any

from benchbook.content.units import UNITS, Unit
from benchbook.languages.formatting import NO_BREAK_SPACE
from benchbook.languages.language import Language
from benchbook.query.predicted import Predicted
from benchbook.rendering.downloads import prediction_path

Rows = list[tuple[str, str, Any]]
# Fields of a configuration that say how large the model is; the raw record has them all.
_DIMENSIONS = 6


def predicted_mark(language: Language, fits_not: bool = False) -> str:
    """The mark of what was predicted, not measured.

    Parameters:
        language: Of the page.
        fits_not: Whether the run does not fit the machine, which the mark says too.
    """
    hint = escape(language.text("predicted_fits_not_hint" if fits_not else "predicted_hint"))
    word, outcome = escape(language.text("predicted")), ""
    if fits_not:
        word += escape(language.text("comma"))
        outcome = f'<span class="bb-outgrown">{escape(language.text("predicted_fits_not"))}</span>'
    return f'<abbr class="bb-predicted" title="{hint}">≈ <span class="bb-word">{word}</span>{outcome}</abbr>'


def predicted_line(predictions: Sequence[Predicted], measured: bool, language: Language) -> list[str]:
    """The segments of the one line that no reader may miss: "torch 2.13", "predicted Nov 2026, not measured".

    Parameters:
        predictions: What the block shows of them.
        measured: Whether it shows measurements beside them.
        language: Of the page.
    """
    if not predictions:
        return []
    if measured:
        return [language.text("predicted_too")]
    versions = dict.fromkeys(f"torch {_short(one.prediction.packages)}" for one in predictions)
    months = dict.fromkeys(language.month(one.prediction.made) for one in predictions)
    comma = language.text("comma")
    return [comma.join(versions), language.text("predicted_in", month=comma.join(months))]


def _short(packages: Mapping[str, str]) -> str:
    return ".".join(packages.get("torch", "").split("+")[0].split(".")[:2])


def predicted_rows(predictions: Sequence[Predicted], measured: bool, language: Language) -> Rows:
    """The details: when and by which predictor, whether blind, for what, and how to make them again."""
    if not predictions:
        return []
    comma = language.text("comma")
    made = dict.fromkeys(one.prediction.made[:10] for one in predictions)
    versions = dict.fromkeys(
        ", ".join(f"{name} {version}" for name, version in sorted(one.prediction.packages.items()))
        for one in predictions
    )
    rules = dict.fromkeys(language.text("rules", n=one.prediction.predictor) for one in predictions)
    commits = dict.fromkeys(one.prediction.commit[:12] for one in predictions if one.prediction.commit)
    rows: Rows = [
        ("predicted_on", "text", comma.join(language.day(day) for day in made)),
        ("predictor", "text", comma.join((*rules, *versions, *commits))),
        ("blind", "text", _blindness(predictions, language)),
    ]
    if model := _common([one.prediction.model for one in predictions]):
        shown = list(model.items())
        text = ", ".join(
            f"{key} = {value}" for key, value in shown[:_DIMENSIONS] if not isinstance(value, (dict, list))
        )
        rows.append(("model", "code", text + (", …" if len(shown) > _DIMENSIONS else "")))
    if workload := _common([one.prediction.workload for one in predictions]):
        rows.append(("workload", "code", ", ".join(f"{key} = {value}" for key, value in workload.items())))
    rooms = dict.fromkeys(one.prediction.room for one in predictions if one.prediction.room is not None)
    if rooms:
        rows.append(("room", "text", comma.join(_bytes(room, language) for room in rooms)))
    scripts = {(one.machine.name, one.script.reference): None for one in predictions}
    name = language.text("raw_prediction") + language.text("colon")
    links = [(f"{name}{script}", prediction_path(machine, script)) for machine, script in scripts]
    rows.append(("record", "links", links))
    if not measured:
        machine = predictions[0].machine.name
        names = " ".join(script for _, script in scripts)
        rows.append(("command", "code", f"benchbook predictions {names} --machine {machine}"))
    return rows


def value_rows(one: Predicted, language: Language, name: str, shown: Unit | None = None) -> Rows:
    """The details of one predicted quantity, called `name`: its value, and what makes up the peak.

    Parameters:
        one: The prediction.
        language: Of the page.
        name: How the page refers to it.
        shown: The unit of what it is compared with; None for one that suits it alone.
    """
    text = language.quantity(one.value, UNITS["B"], shown).text
    hint = language.text("predicted_fits_not_hint" if one.fits_not else "predicted_hint")
    remark = language.text("with_remark", text=text, remark=hint)
    rows: Rows = [("quantity", "code", name), ("prediction", "text", remark)]
    peak = one.prediction.categories
    if one.value == one.prediction.peak_allocated and peak:
        parts = [
            f"{language.label(category) or category}{NO_BREAK_SPACE}{_bytes(size, language)}"
            for category, size in sorted(peak.items(), key=lambda item: -item[1])
            if size
        ]
        rows.append(("peak", "text", " · ".join(parts)))
    return rows


def _bytes(size: int, language: Language) -> str:
    return language.isolated(language.quantity(size, UNITS["B"]).text)


def _blindness(predictions: Sequence[Predicted], language: Language) -> str:
    blind = {one.prediction.blind for one in predictions}
    return language.text("blind_some") if len(blind) > 1 else language.flag(blind.pop())


def _common(tables: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """What all the tables agree on."""
    first, *others = tables
    return {
        key: value for key, value in first.items() if all(repr(one.get(key)) == repr(value) for one in others)
    }
