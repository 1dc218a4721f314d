"""What `main` declares, and is declared otherwise here, is told."""

from __future__ import annotations

from pathlib import Path

import pytest

from benchbook.checking.committed import committed_records
from benchbook.checking.declarations import changed_declarations
from benchbook.content.project import Project
from builders import make_project, write
from repositories import commit_all, git

CLAIMS = """\
# Of sums.

[[claim]]
id = "it-adds"
a = "sums/add.py#total"
relation = "greater"
b = 1
machines = { "here" = "holds" }
source = { title = "A book", url = "https://example.org/", quote = "It adds.", date = "2026" }

[[claim]]
id = "it-is-quick"
a = "sums/add.py#seconds"
relation = "less"
b = "1 s"
times = 2
machines = { "here" = "holds" }
"""
REVIEWS = """\
[[review]]
role = "verifier"
date = "2026-01-02"
findings = ["It is wrong."]
answers = ["It is right."]

[[review]]
role = "editor"
language = "ja"
date = "2026-01-02"
findings = []
"""
MODELS = """\
[one]
title = "One"
parameters = 1_000
published = "https://example.org/one"

[two]
title = "Two"
parameters = 2_000
"""
QUESTIONS = """\
machines = ["here", "there"]

[[script]]
name = "add.py"
values = { "total" = "peak_allocated" }

[[script.case]]
where = { steps = 2 }
model = "one"

[[script]]
name = "multiply.py"
"""
FILES = {
    "sums/predictions.toml": QUESTIONS,
    "sums/claims.toml": CLAIMS,
    "sums/review.toml": REVIEWS,
    "models/models.toml": MODELS,
}


@pytest.fixture
def project(tmp_path: Path) -> Project:
    """A checkout on a branch of `main`, which declares something of each kind."""
    project = make_project(tmp_path)
    for name, text in FILES.items():
        write(project.snippets / name, text)
    commit_all(project.root)
    git(project.root, "checkout", "--quiet", "-b", "change")
    return project


def told(project: Project) -> list[str]:
    """What is said of declarations, each as path:line: what."""
    committed = committed_records(project)
    assert committed is not None
    problems = changed_declarations(project, committed)
    return [f"{one.path.removeprefix('snippets/')}:{one.line}: {one.what}" for one in problems]


@pytest.mark.parametrize(
    ("name", "old", "new", "said"),
    [
        ("sums/claims.toml", "times = 2", "times = 20", "11: the claim `it-is-quick` {} (its times differs)"),
        ("sums/claims.toml", "times = 2\n", "", "11: the claim `it-is-quick` {} (its times differs)"),
        ("sums/claims.toml", '"It adds."', '"It did."', "3: the claim `it-adds` {} (its source differs)"),
        (
            "sums/review.toml",
            '"It is wrong."',
            '"It is fine."',
            "1: the review of sums by the verifier (en) of 2026-01-02 {} (its findings differs)",
        ),
        (
            "sums/predictions.toml",
            "steps = 2",
            "steps = 3",
            "3: the question of sums/add.py {} (its case differs)",
        ),
        (
            "sums/predictions.toml",
            ', "there"',
            "",
            "1: the list of machines of sums {} (its machines differs)",
        ),
        ("models/models.toml", "2_000", "3_000", "6: the model `two` {} (its parameters differs)"),
    ],
)
def test_what_is_declared_otherwise_is_told_with_its_line(
    project: Project, name: str, old: str, new: str, said: str
) -> None:
    text = FILES[name]
    assert text.count(old) == 1
    write(project.snippets / name, text.replace(old, new))
    assert told(project) == [f"{name}:{said.format('is otherwise than on `main`')}"]


def test_what_is_declared_no_longer_is_told(project: Project) -> None:
    for name, text in FILES.items():
        write(project.snippets / name, text[: text.rindex("\n[")])
    (project.snippets / "sums/review.toml").unlink()
    write(project.snippets / "others/models.toml", "one = 1")
    assert sorted(told(project)) == [
        "models/models.toml:1: the model `two` is gone, and `main` has it",
        "sums/claims.toml:1: the claim `it-is-quick` is gone, and `main` has it",
        "sums/predictions.toml:1: the question of sums/multiply.py is gone, and `main` has it",
        "sums/review.toml:1: the review of sums by the editor (ja) of 2026-01-02 is gone, and `main` has it",
        "sums/review.toml:1: the review of sums by the verifier (en) of 2026-01-02 is gone, and `main` has it",
    ]


def test_what_is_new_is_not_told_and_what_moves_is(project: Project) -> None:
    head, first, second = CLAIMS.split("[[claim]]")
    write(project.snippets / "sums/claims.toml", f"{head}[[claim]]{second}")
    new = first.replace("it-adds", "it-is-new")
    write(project.snippets / "others/claims.toml", f"[[claim]]{new}\n[[claim]]{first}")
    write(project.snippets / "models/models.toml", f"# The same.\n{MODELS}\n[three]\ntitle = 'Three'\n")
    (moved,) = told(project)
    assert moved == "others/claims.toml:10: the claim `it-adds` is in snippets/sums/claims.toml on `main`"


@pytest.mark.parametrize("text", ["[[claim]", "claim = 1", "claim = [1]", "[claim]\nid = 'it-adds'", "\0"])
def test_a_file_of_another_form_holds_nothing(project: Project, text: str) -> None:
    write(project.snippets / "sums/claims.toml", text)
    assert [one.partition(": ")[2] for one in told(project)] == [
        f"the claim `{name}` is gone, and `main` has it" for name in ("it-adds", "it-is-quick")
    ]
