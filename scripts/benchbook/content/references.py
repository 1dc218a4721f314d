"""The grammar by which pages name what scripts yield, and what a reference stands for in the scripts."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Literal

from benchbook.content.parameters import axis_text
from benchbook.content.problems import Problem, did_you_mean, few_known
from benchbook.content.script import Cell, Script, Variant
from benchbook.content.units import DEVICE_METERS, METERS, UNITS, Unit, convertible, targets

_SCRIPT = re.compile(
    r"(?P<script>[A-Za-z0-9_-]+/[A-Za-z0-9_-]+\.py)(?:\?(?P<query>[^#\s]*))?(?:#(?P<fragment>\S*))?\Z"
)
_FRAGMENT = re.compile(
    r"(?P<name>[A-Za-z_][A-Za-z0-9_]*)(?:\.(?P<meter>[a-z_]+)|\[(?P<index>-?\d{1,9})\])?\Z"
)
_FORM = "write `guide/script.py#metric`, `guide/script.py#cell.meter` or `guide/script.py?axis=value#metric`"

Form = Literal["plain", "ratio", "saving"]
# What to show of a quantity: what was measured, or a marked prediction for want of it; what was predicted;
# or how far that is off what was measured.
Show = Literal["measured", "predicted", "error"]
# Of two predictions of one quantity: the first, blind one; or that made once the first was put to the test.
Which = Literal["first", "anew"]


class UnresolvedError(Exception):
    """A reference, or a block that holds some, means nothing.

    Attributes:
        what: What is wrong, without a full stop.
        fix: What to do about it, likewise.
    """

    def __init__(self, what: str, fix: str) -> None:
        super().__init__(f"{what}; {fix}")
        self.what = what
        self.fix = fix

    def at(self, path: str, line: int) -> Problem:
        """The problem it is at a place."""
        return Problem(path, line, self.what, self.fix)


class UnfitError(UnresolvedError):
    """What was recorded is there, and is not what a page asks for."""


class OverfullError(UnfitError):
    """Pages would show more than they have room for."""


@dataclass(frozen=True)
class Reference:
    """A name for a cell, a metric or a meter of one variant of a script.

    Parameters:
        script: "guide/script.py".
        axes: The axis values that single out a variant, as text, in the order given.
        name: A cell or a metric.
        meter: What was read around the cell, if that is meant.
        index: The item of a series, if one is meant; negative counts from its end.
    """

    script: str
    axes: tuple[tuple[str, str], ...] = ()
    name: str = ""
    meter: str | None = None
    index: int | None = None

    def __str__(self) -> str:
        query = "?" + "&".join(f"{axis}={value}" for axis, value in self.axes) if self.axes else ""
        end = f".{self.meter}" if self.meter else f"[{self.index}]" if self.index is not None else ""
        return f"{self.script}{query}#{self.name}{end}"


@dataclass(frozen=True)
class ValueSpec:
    """What an inline value shows: one quantity, the ratio of two, or what the first saves of the second.

    Parameters:
        form: Which of the three.
        first: The quantity.
        second: What it is divided by.
        unit: In which unit; None for a sensible one.
        show: What of it.
        beside: The quantity that the sentence compares it with, whose unit it shares.
    """

    form: Form
    first: Reference
    second: Reference | None = None
    unit: str | None = None
    show: Show = "measured"
    beside: Reference | None = None

    @property
    def expression(self) -> str:
        """It without what is shown of it, and in which unit."""
        text = str(self.first) if self.second is None else f"{self.first} / {self.second}"
        return f"1 - {text}" if self.form == "saving" else text

    def __str__(self) -> str:
        show = "" if self.show == "measured" else self.show
        beside = f"beside {self.beside}" if self.beside else ""
        return " ".join(filter(None, (self.expression, show, beside, self.unit)))


@dataclass(frozen=True)
class Target:
    """What a reference stands for in a script.

    Parameters:
        reference: The reference itself.
        script: The script it names.
        variant: The one variant, with the parameters of no particular machine.
        unit: The unit of the quantity.
        device_memory: Whether it counts bytes of the device's memory, so that it fits a device or not.
    """

    reference: Reference
    script: Script
    variant: Variant
    unit: Unit
    device_memory: bool = False

    @property
    def seeds(self) -> bool:
        """Whether it has a value for each seed, and the reference means all of them."""
        if self.reference.meter is not None or self.reference.index is not None:
            return False
        metric = self.script.metadata.metrics.get(self.reference.name)
        return metric is not None and metric.seeds


def parse_reference(text: str) -> Reference:
    """The reference that `text` is.

    Raises:
        UnresolvedError: It is none.
    """
    match = _SCRIPT.match(text.strip())
    if match is None:
        raise UnresolvedError(f"`{text.strip()}` is not a reference", _FORM)
    axes = []
    for pair in filter(None, (match["query"] or "").split("&")):
        axis, equals, value = pair.partition("=")
        if not (axis and equals and value):
            raise UnresolvedError(
                f"`{pair}` is not a choice of a variant", "write it as `?axis=value&axis=value`"
            )
        axes.append((axis, value))
    if not match["fragment"]:
        raise UnresolvedError(f"`{text.strip()}` names no cell or metric", "add `#` and its name")
    fragment = _FRAGMENT.match(match["fragment"])
    if fragment is None:
        raise UnresolvedError(f"`#{match['fragment']}` is not a cell, meter or metric", _FORM)
    index = None if fragment["index"] is None else int(fragment["index"])
    return Reference(match["script"], tuple(axes), fragment["name"], fragment["meter"], index)


def parse_value(text: str) -> ValueSpec:
    """What the inline value `text` shows: `REF [unit]`, `REF / REF [unit]` or `1 - REF / REF [unit]`.

    `predicted` before the unit shows the prediction in any case; `REF error`, how far it is off. In place of
    a unit, `beside REF` shows it in the one that suits both: for two values of one sentence.

    Raises:
        UnresolvedError: It is none of the three, or its unit is not one.
    """
    words = text.split()
    form: Form = "plain"
    if words[:2] == ["1", "-"]:
        form, words = "saving", words[2:]
    if not words:
        raise UnresolvedError("an inline value names nothing", _FORM)
    first, rest = parse_reference(words[0]), words[1:]
    second = None
    if rest[:1] == ["/"]:
        if len(rest) < 2:
            raise UnresolvedError(
                f"`{text.strip()}` divides by nothing", "name what to divide by after the ` / `"
            )
        second, rest = parse_reference(rest[1]), rest[2:]
        form = "ratio" if form == "plain" else form
    if form == "saving" and second is None:
        raise UnresolvedError(f"`{text.strip()}` is not a saving", "write it as `1 - A / B percent`")
    show: Show = "measured"
    if rest[:1] == ["predicted"]:
        show, rest = "predicted", rest[1:]
    elif rest[:1] == ["error"]:
        show, rest = "error", rest[1:]
        if second is not None or rest:
            raise UnresolvedError(
                f"`{text.strip()}` is not an error", "write `REF error`: of one quantity, always in percent"
            )
    if rest[:1] == ["beside"]:
        if second is not None or len(rest) != 2:
            raise UnresolvedError(
                f"`{text.strip()}` is beside nothing", "write `REF beside REF`, which has no unit of its own"
            )
        return ValueSpec(form, first, show=show, beside=parse_reference(rest[1]))
    if len(rest) > 1:
        raise UnresolvedError(f"`{' '.join(rest)}` is not a unit", "write one unit after the reference")
    unit = rest[0] if rest else None
    if unit is not None and unit not in UNITS and not (second and unit == "x"):
        raise UnresolvedError(f"`{unit}` is not a unit", did_you_mean(unit, UNITS, "unit"))
    if second is not None and unit not in (None, "x", "percent", "1"):
        raise UnresolvedError(f"a ratio has no unit `{unit}`", "write `percent` or `x` after it, or nothing")
    return ValueSpec(form, first, second, unit, show)


def _single_variant(script: Script, axes: tuple[tuple[str, str], ...]) -> Variant:
    """The one variant of `script` that `axes` single out, or the one of several that has no other axes.

    Raises:
        UnresolvedError: An axis or a value is unknown, or the variant is not the only one.
    """
    variants = matching_variants(script, axes)
    exact = [variant for variant in variants if len(variant.axes) == len(axes)]
    if len(exact) == 1:
        return exact[0]
    if len(variants) > 1:
        open_axes = sorted({axis for v in variants for axis in v.axes} - {axis for axis, _ in axes})
        known = ", ".join(f"{axis} ({few_known(axis_values(variants, axis))})" for axis in open_axes)
        raise UnresolvedError(
            f"`{script.reference}` has {len(variants)} variants here", f"choose one by `?axis=value`: {known}"
        )
    return variants[0]


def matching_variants(script: Script, axes: tuple[tuple[str, str], ...]) -> tuple[Variant, ...]:
    """The variants of `script` at these axis values, at least one.

    Raises:
        UnresolvedError: An axis or a value is unknown, or no variant has them all.
    """
    variants = script.variants(())
    for axis, value in axes:
        values = axis_values(variants, axis)
        if not values:
            known = {name for variant in variants for name in variant.axes}
            what = f"`{script.reference}` does not sweep `{axis}`"
            raise UnresolvedError(
                what, did_you_mean(axis, known, "axis") if known else "leave the `?...` away"
            )
        if value not in values:
            what = f"`{script.reference}` has no variant with {axis}={value}"
            raise UnresolvedError(what, f"use one of its values: {few_known(values)}")
    found = tuple(v for v in variants if all(axis_text(v.at(axis)) == value for axis, value in axes))
    if not found:
        point = ", ".join(f"{axis}={value}" for axis, value in axes)
        names = few_known([variant.name for variant in variants], "; ")
        raise UnresolvedError(
            f"`{script.reference}` has no variant with {point}", f"use one of its variants: {names}"
        )
    return found


def axis_values(variants: tuple[Variant, ...], axis: str) -> tuple[str, ...]:
    """The values that `axis` takes over `variants`, as text, each once, in the declared order."""
    swept = any(axis in variant.axes for variant in variants)
    return tuple(dict.fromkeys(axis_text(variant.at(axis)) for variant in variants)) if swept else ()


def cell_of(script: Script, name: str) -> Cell:
    """The cell `name` of `script`.

    Raises:
        UnresolvedError: It has none of that name.
    """
    try:
        return script.cell(name)
    except KeyError:
        known = [*(cell.name for cell in script.cells), *script.regions]
        what = f"`{script.reference}` has no cell `{name}`"
        raise UnresolvedError(what, did_you_mean(name, known, "cell")) from None


def unit_of(script: Script, name: str, meter: str | None = None) -> tuple[Unit, bool]:
    """The unit of a metric, or of a meter around a cell, and whether it counts the device's memory.

    Raises:
        UnresolvedError: The script has no such metric, or no such cell, or there is no such meter.
    """
    if meter is not None:
        cell_of(script, name)
        if meter not in METERS:
            raise UnresolvedError(f"`{meter}` is not a meter", did_you_mean(meter, METERS, "meter"))
        return METERS[meter], meter in DEVICE_METERS
    metric = script.metadata.metrics.get(name)
    if metric is not None:
        return UNITS[metric.unit], metric.memory == "device"
    cells = [cell.name for cell in script.cells]
    if name in cells:
        what = f"`{name}` of `{script.reference}` is a cell, not a metric"
        raise UnresolvedError(
            what, f"add what was read around it: {', '.join(f'#{name}.{m}' for m in METERS)}"
        )
    what = f"`{script.reference}` has no metric `{name}`"
    raise UnresolvedError(what, did_you_mean(name, script.metadata.metrics, "metric"))


def target_of(reference: Reference, script: Script) -> Target:
    """What `reference` to a metric or a meter stands for in `script`.

    Raises:
        UnresolvedError: It stands for nothing there.
    """
    unit, device_memory = unit_of(script, reference.name, reference.meter)
    return Target(reference, script, _single_variant(script, reference.axes), unit, device_memory)


def check_unit(unit: Unit, target: object) -> Unit | None:
    """The unit that `target` names, if a value in `unit` can be shown in it.

    Raises:
        UnresolvedError: It cannot, or there is no such unit.
    """
    if target is None:
        return None
    # What stands in a fence may be a list or a table.
    if not isinstance(target, str) or target not in UNITS:
        raise UnresolvedError(f"`{target}` is not a unit", did_you_mean(str(target), UNITS, "unit"))
    if not convertible(unit, UNITS[target]):
        raise UnresolvedError(
            f"{unit.symbol} cannot be shown in {target}", f"use one of: {', '.join(targets(unit))}"
        )
    return UNITS[target]
