"""Small projects for tests to build, damage and repair."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from benchbook.content.project import Project
from benchbook.content.records import (
    Campaign,
    Record,
    Run,
    VariantRecord,
    bundle_digest,
    write_record,
    write_text,
)
from benchbook.content.script import machine_kinds, parse_script
from benchbook.content.units import UNITS

MACHINE = "cpu-test"

SCRIPT = '''"""Adds numbers."""
# /// script
# requires-python = ">=3.11"
# dependencies = []
#
# [tool.benchbook.metrics]
# total = { unit = "count" }
# ///

# %% parameters
steps = 4  # how many

# %% add
total = sum(range(steps))
print(f"total {total}")

# %% checks
assert total >= 0
'''

PAGE = """---
description: What adding costs.
---

# Adding { #adding }

The total is `#!value sums/add.py#total`.

```cell
sums/add.py#add
```
"""

MACHINE_JSON: dict[str, Any] = {
    "schema": 1,
    "name": MACHINE,
    "kind": "cpu",
    "title": "A processor for tests",
    "short": "Test CPU",
    "owner": None,
    "accelerator": None,
    "cpu": {"model": None, "vendor": None, "cores": 2, "threads_per_core": None, "flags": []},
    "memory_bytes": 24 * 2**30,
    "virtualisation": None,
    "system": {"kernel": None},
    "published": False,
}

# What makes of it a machine with a GPU.
GPU_JSON: dict[str, Any] = {
    "kind": "cuda",
    "accelerator": {
        "name": "NVIDIA H200",
        "vendor": "NVIDIA",
        "memory_bytes": 143771 * 2**20,
        "count": 1,
        "driver": "580.95.05",
        "runtime": "CUDA 13.0",
        "power_limit_watts": 700.0,
        "clocks_mhz": {"sm": 1980, "memory": None},
        "mig": False,
        "ecc": True,
        "compute_capability": "9.0",
        "multiprocessors": 132,
    },
}


def with_table(table: str, source: str = SCRIPT) -> str:
    """`source` with more lines of TOML at the end of its metadata."""
    lines = "".join(f"# {line}\n" for line in table.strip().splitlines())
    return source.replace("# ///\n\n", f"{lines}# ///\n\n", 1)


SWEEP = with_table("[tool.benchbook.matrix]\nsteps = [1, 2]")


def write(path: Path, text: str) -> Path:
    """Write a file, making its folders."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, "utf-8")
    return path


def make_project(root: Path, script: str = SCRIPT, page: str = PAGE) -> Project:
    """A project of one guide, one script, one page and one machine, with a fresh record."""
    write(
        root / "pyproject.toml",
        f'[tool.benchbook]\nreference_machine = "{MACHINE}"\nblocking_machines = ["{MACHINE}"]\n',
    )
    write(root / "mkdocs.yml", "site_name: Test\n")
    write(root / "docs/en/_language.yml", "strings: {}\nlabels: {}\n")
    write(root / "docs/en/sums.md", page)
    write(root / "snippets/sums/add.py", script)
    project = Project(root)
    write_text(project.records / MACHINE / "machine.json", json.dumps(MACHINE_JSON, indent=2))
    write_record(project.record_path(MACHINE, "sums/add.py"), make_record(script))
    return project


def make_record(script: str = SCRIPT, **changes: Any) -> Record:
    """A record of every variant of `script` with three runs, each metric counting up; `changes` to each variant.

    No two runs take the same time, nor have the same place.
    """
    parsed = parse_script(script, "snippets/sums/add.py", "sums/add.py")
    campaign = Campaign(
        started="2026-01-02T03:04:05Z",
        finished="2026-01-02T03:05:05Z",
        commit=None,
        modified=False,
        recorded_by="maintainers",
        packages={"python": "3.11.7"},
        state={},
    )
    variants = {}
    for number, variant in enumerate(parsed.variants(machine_kinds("cpu", MACHINE))):
        runs = tuple(
            Run(
                3 * number + repeat,
                {
                    # A time is less than what the cells took.
                    name: (6 + repeat) / 100 if UNITS[metric.unit].dimension == "time" else 6 + repeat
                    for name, metric in parsed.metadata.metrics.items()
                },
                {
                    cell.name: {
                        "seconds": (0.1 if cell.name == "add" else 0.001) + number / 1000 + repeat / 100
                    }
                    for cell in parsed.cells
                },
            )
            for repeat in range(3)
        )
        made: dict[str, Any] = {
            "campaign": "20260102T030405Z-test",
            "outcome": "ok",
            "error": None,
            "parameters": variant.parameters,
            "ranks": variant.ranks,
            "environment": variant.environment,
            "meters": variant.meters,
            "code": parsed.code_digest,
            "inputs": {},
            "output": {"add": "total 6\n"},
            "runs": runs,
        }
        variants[variant.name] = VariantRecord(**(made | changes))
    return Record.of("sums/add.py", MACHINE, {"20260102T030405Z-test": campaign}, variants)


def packed(bundle: dict[str, Any]) -> str:
    """The text of a bundle, with the digest of what it holds."""
    return json.dumps(bundle | {"digest": bundle_digest(bundle["machine"], bundle["records"])})
