"""`claims.toml`: every mistake is one problem with its line and a fix."""

from __future__ import annotations

import contextlib
import subprocess
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from benchbook.content.claims import Constant, parse_claims, parse_constant, side_of
from benchbook.content.problems import Problem
from benchbook.content.references import Reference, UnresolvedError
from benchbook.content.units import UNITS

CLAIM = """# Two of them.

[[claim]]
id = "first"
a = "sums/add.py#total"
relation = "less"
b = "sums/add.py?steps=2#total"
ratio = 1.5
machines = { "cpu-test" = "holds" }

[[claim]]
id = "second"
a = "sums/add.py#add.allocated"
relation = "equal"
b = "18 GiB"
times = 2
tolerance = 0.05
[claim.machines]
cpu-test = "refuted"
[claim.source]
title = "A guide"
url = "https://example.org/guide"
"""


def problems(text: str) -> list[Problem]:
    return parse_claims(text, "snippets/sums/claims.toml", "sums")[1]


def test_a_declaration_is_read_with_its_lines() -> None:
    (first, second), wrong = parse_claims(CLAIM, "snippets/sums/claims.toml", "sums")
    assert wrong == []
    assert (first.id, first.guide, first.relation, first.ratio, first.machines) == (
        "first",
        "sums",
        "less",
        1.5,
        {"cpu-test": "holds"},
    )
    assert first.b == Reference("sums/add.py", (("steps", "2"),), "total")
    assert second.b == Constant(18.0, UNITS["GiB"])
    assert (second.times, second.tolerance) == (2.0, 0.05)
    assert second.source is not None
    assert second.source.url == "https://example.org/guide"
    assert (first.line, first.at("b"), first.at("cpu-test")) == (3, 7, 9)
    assert (second.line, second.at("tolerance"), second.at("cpu-test"), second.at("url")) == (11, 17, 19, 22)


@pytest.mark.parametrize(
    ("old", "new", "line", "what", "fix"),
    [
        ('id = "first"', 'id = "First one"', 4, "the `id`", "lower-case"),
        ('id = "first"\n', "", 3, "lacks `id`", "add it"),
        ('relation = "less"', 'relation = "fewer"', 6, "'fewer'", "one of less, greater, equal"),
        ('relation = "less"', 'relations = "less"', 6, "unknown key `relations`", "relation"),
        (
            "ratio = 1.5",
            "ratio = 0.5",
            8,
            "the `ratio` of the claim `first` is 0.5",
            "leave it out for 1.05, or ask for more",
        ),
        ("ratio = 1.5", "ratio = 1.0", 8, "the `ratio`", "ask for more"),
        ("ratio = 1.5", "ratio = true", 8, "the `ratio`", "ask for more"),
        ("ratio = 1.5", f"ratio = {10**400}", 8, "a number is beyond", "fix the TOML"),
        ("ratio = 1.5", "ratio = inf", 8, "the `ratio`", "ask for more"),
        ("ratio = 1.5", "ratio = 1.5\ntolerance = 0.1", 9, "with a `tolerance`", "write `ratio` instead"),
        ("tolerance = 0.05", "tolerance = 5", 17, "the `tolerance`", "a share"),
        ("times = 2", "times = 0", 16, "the `times`", "above 0"),
        ('"18 GiB"', '"18 GiBs"', 15, "`GiBs` is not a unit", "GiB"),
        ('"18 GiB"', '"many"', 15, "`many` is not a reference", "guide/script.py#metric"),
        ('"18 GiB"', "true", 15, "True is nothing to compare with", "18 B/parameter"),
        ('a = "sums/add.py#total"', 'a = "2 s"', 5, "begins with a number", "put it into `b`"),
        (
            '{ "cpu-test" = "holds" }',
            '{ "cpu-test" = "true" }',
            9,
            "the outcome on cpu-test",
            "holds, refuted",
        ),
        ('{ "cpu-test" = "holds" }', "{}", 9, "the `machines`", "name at least one"),
        ('url = "https://example.org/guide"', 'url = "a guide"', 22, "has no address", "https://"),
        (
            'title = "A guide"',
            'title = "A \u202eguide"',
            21,
            "title of the source holds an invisible",
            "remove",
        ),
        ('title = "A guide"', 'title = "A \\u2066guide"', 21, "invisible character (U+2066)", "remove"),
        ('title = "A guide"', 'title = "A guide"\nquote = "\u200bFast."', 22, "the quote of the", "remove"),
        ('title = "A guide"', 'name = "A guide"', 21, "no key `name`", "title"),
        ("[claim.source]", "[claim.sources]", 20, "unknown key `sources`", "source"),
        ('[[claim]]\nid = "first"', '[[claims]]\nid = "first"', 3, "unknown key `claims`", "[[claim]]"),
        ('relation = "less"', "relation = less", 6, "is not valid TOML", "fix the TOML"),
    ],
)
def test_each_mistake_is_named_with_its_line_and_fix(
    old: str, new: str, line: int, what: str, fix: str
) -> None:
    assert old in CLAIM
    found = problems(CLAIM.replace(old, new, 1))
    fitting = [problem for problem in found if what in problem.what]
    assert fitting, found
    assert (fitting[0].path, fitting[0].line) == ("snippets/sums/claims.toml", line)
    assert fix in fitting[0].fix


def test_a_mistake_in_one_claim_leaves_the_others() -> None:
    claims, wrong = parse_claims(CLAIM.replace("ratio = 1.5", "ratio = 0"), "claims.toml", "sums")
    assert [claim.id for claim in claims] == ["second"]
    assert len(wrong) == 1


def test_claims_take_no_longer_than_they_are_many() -> None:
    # What takes the square of their number takes half a minute.
    text = f"{CLAIM!r} * 500"
    code = f"from benchbook.content.claims import parse_claims; parse_claims({text}, 'claims.toml', 'sums')"
    subprocess.run([sys.executable, "-c", code], check=True, timeout=10)


def test_a_file_of_more_than_anyone_claims_is_one_problem() -> None:
    (problem,) = problems(CLAIM * 1000)
    assert (problem.line, "250000 are the most" in problem.what) == (1, True)


def test_a_constant_is_a_number_with_its_unit() -> None:
    assert parse_constant("18 B/parameter") == Constant(18.0, UNITS["B/parameter"])
    assert parse_constant("1e-4 1") == Constant(1e-4, UNITS["1"])
    assert parse_constant("sums/add.py#total") is None
    # Digits without end, and no unit, are looked at once.
    assert parse_constant("9" * 200_000) is None
    assert side_of(3) == Constant(3.0)
    with pytest.raises(UnresolvedError, match=r"`9{40}` is beyond 1e\+100"):
        parse_constant(f"{'9' * 400} B")


@given(st.text(max_size=200))
def test_no_text_makes_the_reader_fail(text: str) -> None:
    claims, wrong = parse_claims(text, "claims.toml", "sums")
    assert claims == []
    assert all(problem.line >= 1 and problem.fix for problem in wrong)


VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.text(max_size=8), inner, max_size=2),
    max_leaves=5,
)


@given(VALUES)
def test_nothing_but_a_number_or_a_reference_is_a_side(value: object) -> None:
    with contextlib.suppress(UnresolvedError):
        assert isinstance(side_of(value), (Constant, Reference))


def test_what_a_machine_needs_is_part_of_what_decides_a_claim() -> None:
    def decided_by(more: str) -> str:
        (first, _), wrong = parse_claims(
            CLAIM.replace("ratio = 1.5\n", f"ratio = 1.5\n{more}"), "claims.toml", "sums"
        )
        assert wrong == []
        return first.predicate

    both = decided_by('needs = ["accelerator", "tensor cores"]\n')
    assert both == decided_by('needs = ["tensor cores", "accelerator"]\n')
    assert len({decided_by(""), decided_by('needs = ["accelerator"]\n'), both}) == 3
