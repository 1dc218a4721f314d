"""The tutorial in CONTRIBUTING works word for word, from top to bottom, in a fresh clone."""

from __future__ import annotations

import os
import subprocess

import pytest
from markdown_it import MarkdownIt
from markdown_it.token import Token

from benchbook.content.project import Project
from clones import FROM_MAKE, ROOT, link_environments
from repositories import git

# It clones, records and builds as a newcomer does.
pytestmark = pytest.mark.slow
CONTRIBUTING = (ROOT / "CONTRIBUTING.md").read_text("utf-8")
SECTION = "Your first benchmark"
END = "-- end of step"


def steps() -> list[tuple[str, list[str]]]:
    """Each block of commands with the lines that its output is said to hold."""
    tokens = MarkdownIt("commonmark").parse(CONTRIBUTING)
    found: list[tuple[str, list[str]]] = []
    inside = False
    for at, token in enumerate(tokens):
        if token.type == "heading_open" and token.tag == "h2":
            inside = tokens[at + 1].content == SECTION
        if inside and token.type == "fence":
            found = with_block(found, token)
    return found


def with_block(found: list[tuple[str, list[str]]], token: Token) -> list[tuple[str, list[str]]]:
    if token.info == "bash":
        return [*found, (token.content, [])]
    assert token.info == "text", token.info
    commands, said = found[-1]
    return [*found[:-1], (commands, [*said, *token.content.splitlines()])]


@pytest.fixture(scope="module")
def outputs(tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    """What each step printed; a command that failed ends the tutorial."""
    folder = tmp_path_factory.mktemp("tutorial")
    repository = Project(ROOT).config.repository
    environment = {
        **{name: text for name, text in os.environ.items() if name not in FROM_MAKE},
        # The clone that is cloned is this one.
        "GIT_CONFIG_COUNT": "3",
        "GIT_CONFIG_KEY_0": f"url.{ROOT}.insteadOf",
        "GIT_CONFIG_VALUE_0": repository,
        "GIT_CONFIG_KEY_1": "user.name",
        "GIT_CONFIG_VALUE_1": "Ada",
        "GIT_CONFIG_KEY_2": "user.email",
        "GIT_CONFIG_VALUE_2": "ada@localhost",
        "PYTHONPATH": str(folder / "handbook/scripts"),
    }
    clone, *rest = (commands for commands, _ in steps())
    done = subprocess.run(
        ["bash", "-euc", clone], cwd=folder, env=environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    here = link_environments(folder / "handbook")
    assert git(here, "rev-parse", "HEAD") == git(ROOT, "rev-parse", "HEAD")
    script = "exec 2>&1\n" + "".join(f"{commands}\necho '{END}'\n" for commands in rest)
    done = subprocess.run(
        ["bash", "-eu", "-c", script], cwd=here, env=environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout
    return [done.stdout, *done.stdout.split(f"{END}\n")]


def test_it_goes_all_the_way() -> None:
    titles = [line for line in CONTRIBUTING.splitlines() if line.startswith("### ")]
    assert len(steps()) >= len(titles)


def test_every_step_works_and_prints_what_is_said(outputs: list[str]) -> None:
    for (commands, said), printed in zip(steps()[1:], outputs[1:], strict=False):
        for line in said:
            assert line.strip() in printed, f"after\n{commands}\nthere is no\n{line}\nin\n{printed}"
