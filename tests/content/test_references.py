"""What pages may refer to, and what they are told where they refer to nothing."""

from pathlib import Path

import pytest

from benchbook.content.problems import did_you_mean
from benchbook.content.project import Project
from benchbook.content.references import (
    Reference,
    UnresolvedError,
    ValueSpec,
    check_unit,
    parse_reference,
    parse_value,
    target_of,
)
from benchbook.content.script import Script, parse_script, read_script
from benchbook.content.units import UNITS
from builders import with_table
from handbooks import FIXTURE, copy_handbook, list_points


@pytest.fixture
def methods() -> Script:
    return read_script(FIXTURE / "snippets/memory/methods.py", Project(FIXTURE).root)


@pytest.mark.parametrize(
    ("text", "reference"),
    [
        ("guide/script.py#metric", Reference("guide/script.py", (), "metric")),
        ("guide/script.py#cell.seconds", Reference("guide/script.py", (), "cell", "seconds")),
        ("guide/script.py#loss[3]", Reference("guide/script.py", (), "loss", None, 3)),
        ("guide/script.py#loss[-1]", Reference("guide/script.py", (), "loss", None, -1)),
        ("guide/script.py?a=1&b=x.y#m", Reference("guide/script.py", (("a", "1"), ("b", "x.y")), "m")),
    ],
)
def test_a_reference_names_script_variant_and_quantity(text: str, reference: Reference) -> None:
    assert parse_reference(text) == reference
    assert str(reference) == text


@pytest.mark.parametrize(
    "text",
    [
        "",
        "script.py#m",
        "guide/script#m",
        "guide/script.py",
        "guide/script.py#",
        "guide/script.py#a b",
        "guide/script.py#a.b.c",
        "guide/script.py?axis#m",
        "../etc/script.py#m",
        "guide/script.py#m[x]",
        f"guide/script.py#m[{'9' * 5000}]",
    ],
)
def test_what_is_no_reference_is_refused(text: str) -> None:
    with pytest.raises(UnresolvedError):
        parse_reference(text)


def test_a_value_is_one_quantity_a_ratio_or_a_saving() -> None:
    first, second = Reference("g/s.py", (), "a"), Reference("g/s.py", (), "b")
    assert parse_value("g/s.py#a GiB") == ValueSpec("plain", first, None, "GiB")
    assert parse_value("g/s.py#a / g/s.py#b") == ValueSpec("ratio", first, second)
    assert parse_value("1 - g/s.py#a / g/s.py#b percent") == ValueSpec("saving", first, second, "percent")


@pytest.mark.parametrize(
    "text", ["g/s.py#a parsecs", "g/s.py#a GiB B", "1 - g/s.py#a", "g/s.py#a / ", "g/s.py#a / g/s.py#b GiB"]
)
def test_what_is_no_value_is_refused(text: str) -> None:
    with pytest.raises(UnresolvedError):
        parse_value(text)


def test_an_unknown_metric_is_answered_with_the_nearest(methods: Script) -> None:
    with pytest.raises(UnresolvedError, match=r"no metric `peak_memry`.*peak_memory"):
        target_of(parse_reference("memory/methods.py#peak_memry"), methods)


def test_a_cell_is_no_metric(methods: Script) -> None:
    with pytest.raises(UnresolvedError, match=r"is a cell, not a metric.*#train\.seconds"):
        target_of(parse_reference("memory/methods.py#train"), methods)


def test_an_unknown_cell_or_meter_is_answered_with_those_there_are(methods: Script) -> None:
    with pytest.raises(UnresolvedError, match=r"no cell `trian`.*train"):
        target_of(parse_reference("memory/methods.py#trian.seconds"), methods)
    with pytest.raises(UnresolvedError, match=r"not a meter.*seconds"):
        target_of(parse_reference("memory/methods.py#train.second"), methods)


def test_an_unknown_axis_or_value_is_answered_with_those_there_are(methods: Script) -> None:
    with pytest.raises(UnresolvedError, match=r"does not sweep `batch`.*batch_size"):
        target_of(parse_reference("memory/methods.py?batch=1#step_time"), methods)
    with pytest.raises(UnresolvedError, match=r"no variant with batch_size=3.*1, 2, 4"):
        target_of(parse_reference("memory/methods.py?batch_size=3#step_time"), methods)


def test_axes_must_leave_one_variant(methods: Script) -> None:
    with pytest.raises(UnresolvedError, match=r"3 variants here.*batch_size \(1, 2, 4\)"):
        target_of(parse_reference("memory/methods.py?method=plain#step_time"), methods)
    target = target_of(parse_reference("memory/methods.py?batch_size=2&method=plain#peak_memory"), methods)
    assert target.variant.name == "method=plain,batch_size=2"
    assert target.unit == UNITS["B"]
    assert target.device_memory


@pytest.fixture
def points(tmp_path: Path) -> Script:
    """A script whose second point sets an axis that its first leaves as it is."""
    project = copy_handbook(tmp_path)
    return read_script(list_points(project), project.root)


def test_the_variant_with_the_named_axes_and_no_more_is_meant(points: Script) -> None:
    target = target_of(parse_reference("memory/methods.py?method=plain#step_time"), points)
    assert target.variant.name == "method=plain"


def test_a_point_that_sets_no_value_has_the_one_that_runs(points: Script) -> None:
    target = target_of(parse_reference("memory/methods.py?batch_size=1#step_time"), points)
    assert target.variant.name == "method=plain"
    with pytest.raises(UnresolvedError, match=r"no variant with batch_size=4; use one of its values: 1, 2"):
        target_of(parse_reference("memory/methods.py?batch_size=4#step_time"), points)


@pytest.mark.parametrize(
    ("text", "what"),
    [
        ("?steps=x", "use one of its values: 0, 1, 2, 3, 4, 5, 6, 7, 8, 9 and 690 more"),
        (
            "",
            "has 700 variants here; choose one by `?axis=value`: steps (0, 1, 2, 3, 4, 5, 6, 7, 8, 9 and 690 more)",
        ),
    ],
)
def test_of_many_values_of_an_axis_the_first_are_told(text: str, what: str) -> None:
    source = with_table(f"[tool.benchbook.matrix]\nsteps = {list(range(700))}")
    script = parse_script(source, "snippets/sums/add.py", "sums/add.py")
    with pytest.raises(UnresolvedError) as caught:
        target_of(parse_reference(f"sums/add.py{text}#total"), script)
    assert str(caught.value).endswith(what)


def test_of_many_names_none_of_which_is_near_the_first_are_told() -> None:
    said = did_you_mean("?", [f"name{one:03}" for one in range(700)], "metric")
    assert said.endswith("name008, name009 and 690 more")


def test_a_unit_must_measure_the_same_kind_of_thing() -> None:
    assert check_unit(UNITS["B"], "GiB") == UNITS["GiB"]
    assert check_unit(UNITS["B"], None) is None
    with pytest.raises(UnresolvedError, match=r"B cannot be shown in ms"):
        check_unit(UNITS["B"], "ms")
    with pytest.raises(UnresolvedError, match=r"`\['s'\]` is not a unit"):
        check_unit(UNITS["B"], ["s"])
    with pytest.raises(UnresolvedError, match=r"samples/s cannot be shown in GB/s"):
        check_unit(UNITS["samples/s"], "GB/s")
