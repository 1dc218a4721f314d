"""The inline value: one number in a sentence, bound to a record."""

from __future__ import annotations

import json
from collections.abc import Sequence
from functools import lru_cache
from html import escape
from typing import Any

from benchbook.content.references import UnfitError, UnresolvedError, ValueSpec, parse_value
from benchbook.content.units import UNITS, Unit, shared_unit
from benchbook.languages.language import Language
from benchbook.query.library import Library, Machine, found_elsewhere
from benchbook.query.measurements import Computed, compute_value, missing_fix, never_predicted
from benchbook.rendering.context import Build
from benchbook.rendering.labels import OUTCOMES
from benchbook.rendering.provenance import (
    Row,
    machine_short,
    predicted_mark,
    render_line,
    render_rows,
    repeats_text,
    result_rows,
    stale_mark,
    value_rows,
)

# What a clock that counts nanoseconds tells of a second.
_MEASURED_DIGITS = 9


def _scripts_of(spec: ValueSpec) -> tuple[str, ...]:
    """The scripts that `spec` names, each once."""
    return tuple(dict.fromkeys(one.script for one in (spec.first, spec.second) if one is not None))


def _value_machines(library: Library, guide: str, scripts: Sequence[str]) -> tuple[Machine, ...]:
    """The machines that have records or predictions of all of `scripts`, the one to show first.

    Raises:
        UnresolvedError: They were neither recorded nor predicted on one.
    """
    shared = [
        machine
        for machine in library.shown_on(scripts[0])
        if all(machine in library.shown_on(script) for script in scripts[1:])
    ]
    if all(machine.published for machine in shared):
        fix = f"record them on one: benchbook record {' '.join(scripts)}"
        raise UnresolvedError(f"no machine has a record of {' and '.join(scripts)}", fix)
    first = library.first_machine(guide, scripts[0])
    return tuple(sorted(shared, key=lambda machine: machine != first))


def resolve_value(
    library: Library, guide: str, text: str
) -> tuple[ValueSpec, list[tuple[Machine, Computed]]]:
    """What the inline value `text` of `guide` shows on each machine, the default one first.

    Raises:
        UnresolvedError: It means nothing, or nothing was recorded for it.
    """
    spec = parse_value(text)
    for script in _scripts_of(spec):
        library.script(script)
    machines = _value_machines(library, guide, _scripts_of(spec))
    machine = machines[0]
    computed = compute_value(library, spec, machine)
    if computed is None and spec.show != "measured":
        # The machine that a guide shows need not be the one whose predictions it speaks of.
        known = ((one, compute_value(library, spec, one)) for one in machines)
        machine, computed = next((pair for pair in known if pair[1] is not None), (machine, None))
        if computed is None:
            raise never_predicted(f"`{spec.expression}`", spec.first.script)
    if computed is None:
        fix = missing_fix(machine, " ".join(_scripts_of(spec)))
        raise UnresolvedError(f"`{spec}` was never recorded on {machine.name}", fix)
    if computed.by_nothing and machine.name == library.reference_machine(guide):
        # What the text was written for; on any other machine that is what was found there.
        raise UnfitError(f"`{spec.second}` is 0 on {machine.name}", "compare with a quantity that is not 0")
    if _yields_nothing(computed):
        raise UnfitError(
            f"`{spec}` has no reading on {machine.name}", "use a meter or metric that machine has"
        )

    def shown_on(other: Machine) -> Computed | None:
        more = compute_value(library, spec, other)
        return None if more is None or _yields_nothing(more) else more

    return spec, [(machine, computed), *found_elsewhere(machine, machines, shown_on)]


def _yields_nothing(computed: Computed) -> bool:
    """Whether the machine ran it, or a publication names it, without this quantity."""
    if computed.by_nothing:
        return False
    return computed.value is None and all(part.source.result.outcome == "ok" for part in computed.parts)


def render_value(build: Build, text: str) -> str:
    """The HTML of the inline value `text`.

    Raises:
        UnresolvedError: It means nothing, or nothing was recorded for it.
    """
    library, page = build.library, build.here
    spec, computed_on = resolve_value(library, page.guide, text)
    shown, computed = computed_on[0]
    key = str(spec)
    away = shown.name != library.reference_machine(page.guide)
    inside = _inside(spec, shown, computed, away or shown.published, page.language)
    if not away:
        page.values[key] = _inside(spec, shown, computed, True, page.language)
    for machine, found in computed_on:
        page.machines[machine.name] = machine
        tree = _details(build, spec, found)
        if machine != shown or away:
            tree["parts"] = {"": _inside(spec, machine, found, machine.published, page.language)}
        build.keep("values", key, machine, tree)
    return f'<button type="button" class="bb-value" data-bb="{escape(key)}">{inside}</button>'


def keep_values_from_elsewhere(build: Build) -> None:
    """Remember, once a page is whole, what its values show on machines that have nothing of them.

    Ten times "not measured" in a paragraph cannot be read: each keeps its number, and says whose it is.
    """
    page = build.here
    for key, inside in page.values.items():
        for machine in page.machines.values():
            if key not in page.data.get(machine.name, {}).get("values", {}):
                build.keep("values", key, machine, {"parts": {"": inside}})


def _inside(spec: ValueSpec, machine: Machine, computed: Computed, told: bool, language: Language) -> str:
    """The HTML within the button of a value; `told` says whose it is beside it."""
    # Whoever copies it gets a space between the number and whose it is.
    whose = escape(machine_short(machine, language))
    tag = f'\u00a0<sup class="bb-tag" dir="auto">{whose}</sup>' if told else ""
    predicted = predicted_mark(language, computed.fits_not) if computed.kind == "prediction" else ""
    stale = any(part.source.verdict.state == "stale" for part in computed.parts)
    mark = stale_mark(language) if stale else ""
    return f"{_data_element(spec, machine, computed, language)}{predicted}{tag}{mark}"


def _data_element(spec: ValueSpec, machine: Machine, computed: Computed, language: Language) -> str:
    """The `<data>` of a value, which a program can read."""
    size = ""
    if computed.value is not None and spec.form == "plain" and computed.figures[0].device_memory:
        size = f' data-bytes="{raw(computed.value)}"'
    words = computed.value is None or computed.figures[0].flag
    kind = "" if computed.kind == "measurement" else f' data-kind="{computed.kind}"'
    direction = "" if words else ' dir="ltr"'
    reason = ""
    if computed.by_nothing:
        # What it would be divided by, as a formula, which every language reads.
        nothing = language.quantity(0, computed.figures[1].unit).text
        reason = f' title="{escape(f"{spec.second} = {nothing}")}"'
    text = escape(computed_text(spec, computed, language))
    return (
        f'<data value="{escape(raw(computed.value))}" data-ref="{escape(spec.expression)}" '
        f'data-machine="{escape(machine.name)}"{kind}{size}{direction}{reason}>{text}</data>'
    )


def computed_text(spec: ValueSpec, computed: Computed, language: Language) -> str:
    """The number, or the word in its place, as `language` writes it."""
    if computed.by_nothing:
        return "—"
    if computed.value is None:
        outcome = next(
            (p.source.result.outcome for p in computed.parts if p.source.result.outcome != "ok"), ""
        )
        return language.text(OUTCOMES.get(outcome, "not_measured"))
    if spec.form == "plain" and computed.figures[0].flag:
        return language.flag(bool(computed.value))
    if computed.kind == "error":
        return language.signed_percent(computed.value)
    if spec.unit == "x":
        return language.ratio(computed.value)
    return language.quantity(computed.value, computed.unit, computed.shown).text


@lru_cache(maxsize=None, typed=True)
def raw(value: float | None) -> str:
    """A number as JSON, an empty text for none; of a fraction as many digits as were measured."""
    if isinstance(value, float) and not value.is_integer():
        value = float(f"{value:.{_MEASURED_DIGITS}g}")
    return "" if value is None else json.dumps(value)


def _detail_unit(spec: ValueSpec, computed: Computed) -> Unit | None:
    """The unit in which the details show what a value is made of: the value's own, or one that suits all."""
    if spec.second is None and computed.kind != "error" and computed.shown is not None:
        return computed.shown
    amounts = [(one.value, one.unit) for one in computed.parts if one.value is not None]
    amounts += [(one.value, UNITS["B"]) for one in computed.predictions]
    return shared_unit(amounts) if len(amounts) > 1 else None


def _details(build: Build, spec: ValueSpec, computed: Computed) -> dict[str, Any]:
    """Where a value comes from: the line, the rows that are its own, the key of the others."""
    language = build.here.language
    names = (str(spec.first), str(spec.second))
    rows: list[Row] = []
    if computed.kind == "error" and computed.value is not None:
        rows.append(("error", "text", language.signed_percent(computed.value)))
    shown = _detail_unit(spec, computed)
    for one, name in zip(computed.figures, names, strict=False):
        rows += result_rows(one.measured, language, name, shown) if one.measured else []
        rows += value_rows(one.predicted, language, name, shown) if one.predicted else []
    key, origin = build.keep_origin([part.source for part in computed.parts], computed.predictions)
    build.here.fits |= spec.form == "plain" and computed.figures[0].device_memory
    line = render_line(origin, repeats_text(computed.parts, language), language)
    return {"line": line, "rows": render_rows(rows, language), "origin": key}
