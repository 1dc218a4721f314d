"""Run small scripts as the recorder does."""

from __future__ import annotations

import textwrap
from pathlib import Path

from benchbook.content.project import Project
from benchbook.content.script import Script, parse_script, read_script
from benchbook.recording.campaign import make_job
from benchbook.recording.hosts import Host
from benchbook.recording.jobs import Job, Result
from builders import write

HEAD = '''"""{title}"""
# /// script
# requires-python = ">=3.11"
# dependencies = []
#
# [tool.benchbook]
{table}
# ///

{body}
'''

# The head of a script of two variants, each run twice.
SWEEP = """
    needs = ["cpu"]
    repeats = 2
    [tool.benchbook.metrics]
    doubled = { unit = "count" }
    [tool.benchbook.matrix]
    n = [1, 2]
"""


def script_text(body: str, table: str = 'needs = ["cpu"]', title: str = "A small one.") -> str:
    """A script with the given cells; one without cells becomes the cell `work`, and passes its checks."""
    body = textwrap.dedent(body).strip()
    if "# %%" not in body:
        body = f"# %% work\n{body}\n\n# %% checks\nassert True"
    lines = textwrap.dedent(table).strip().splitlines()
    commented = "\n".join(f"# {line}".rstrip() for line in lines)
    return HEAD.format(title=title, table=commented, body=body)


def add_script(root: Path, body: str, table: str = 'needs = ["cpu"]', name: str = "guide/small.py") -> Script:
    """Write such a script into a project."""
    return read_script(write(root / "snippets" / name, script_text(body, table)), root)


def small_project(root: Path) -> Project:
    """A project with nothing in it."""
    (root / "snippets").mkdir(parents=True, exist_ok=True)
    (root / "mkdocs.yml").touch()
    return Project(root)


def job_of(root: Path, body: str, table: str = 'needs = ["cpu"]') -> Job:
    """The job that runs the first variant of such a script."""
    script = add_script(root, body, table)
    path = root / script.path
    return make_job(script, script.variants(("cpu",))[0], str(path), str(root))


def run_in(host: Host, root: Path, body: str, table: str = 'needs = ["cpu"]') -> Result:
    """Run such a script once."""
    return host.run(job_of(root, body, table))


def parsed(body: str, table: str = 'needs = ["cpu"]') -> Script:
    """Such a script, nowhere on disk."""
    return parse_script(script_text(body, table), "snippets/guide/small.py", "guide/small.py")
