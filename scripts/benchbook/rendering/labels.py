"""The words of a language for what scripts call things, and for how their runs ended."""

from __future__ import annotations

from html import escape

from benchbook.content.metadata import ParameterValue
from benchbook.content.parameters import axis_text
from benchbook.content.references import Show, Which
from benchbook.languages.language import Language
from benchbook.rendering.specs import CELLS, METRICS

# How a run ended, other than well, and the interface string that says so.
OUTCOMES = {
    "out of memory": "outcome_out_of_memory",
    "timed out": "outcome_timed_out",
    "crashed": "outcome_crashed",
}


def axis_label(language: Language, axis: str, value: ParameterValue, scope: str) -> str:
    """The HTML of an axis value: its label, or the value as Python writes it."""
    label = language.label(f"{axis}={axis_text(value)}", scope)
    if label is None and axis in (CELLS, METRICS):
        label = language.label(str(value), scope)
    if label is not None:
        return _named(language, label)
    if isinstance(value, bool):
        return f"<bdi>{escape(language.flag(value))}</bdi>"
    if isinstance(value, (int, float)):
        return f'<bdi dir="ltr">{escape(language.number(value))}</bdi>'
    return f'<code lang="en" dir="ltr">{escape(str(value))}</code>'


def name_label(language: Language, name: str, scope: str) -> str:
    """The HTML of the name of an axis, a metric or a meter: its label, or the name itself."""
    label = language.label(name, scope)
    return _named(language, label) if label else f'<code lang="en" dir="ltr">{escape(name)}</code>'


# What a column shows of its quantity where that is not a measurement, and the interface string that says so.
_REMARKS = {
    ("predicted", "first"): "predicted",
    ("predicted", "anew"): "predicted_anew",
    ("error", "first"): "prediction_error",
    ("error", "anew"): "prediction_error_anew",
}


def head_label(language: Language, name: str, scope: str, show: Show, which: Which) -> str:
    """The HTML of the head of a column: the name, with what is shown of it where that was not measured."""
    if show == "measured":
        return name_label(language, name, scope)
    remark = language.text(_REMARKS[show, which])
    label = language.label(name, scope) or name
    return _named(language, language.text("with_remark", text=label, remark=remark))


def _named(language: Language, label: str) -> str:
    """The HTML of a label, in the direction of its language even where it begins with a Latin word."""
    direction = ' dir="rtl"' if language.direction == "rtl" else ""
    return f"<bdi{direction}>{language.words(label)}</bdi>"
