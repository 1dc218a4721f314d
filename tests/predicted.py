"""A small handbook of which something was predicted, by a predictor that multiplies, for the tests of predictions."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from benchbook.content.project import Project
from benchbook.predictions.asking import Question
from benchbook.predictions.making import Answer, Outcome, Stamp, make_predictions
from benchbook.predictor.room import ASSUMED_CONTEXT
from builders import PAGE, SCRIPT, make_project, with_table, write
from handbooks import CPU, copy_handbook

H200 = "nvidia-h200-141gb"
# Its memory as the driver reports it, less a context that is assumed.
H200_ROOM = 143771 * 2**20 - ASSUMED_CONTEXT
MADE = "2026-11-20T10:00:00Z"
STAMP = Stamp(
    commit="0" * 40,
    modified=False,
    packages={"torch": "2.13.0+cpu", "transformers": "5.23.0"},
    clock=lambda: MADE,
)

# Two variants, with a value that a GPU gives another.
ADDING = with_table(
    '[tool.benchbook.on.accelerator]\nsteps = 8\n[tool.benchbook.matrix]\nmode = ["plain", "lean"]',
    SCRIPT.replace(
        '# total = { unit = "count" }',
        '# total = { unit = "count" }\n# peak = { unit = "B", memory = "device" }',
    )
    .replace(
        "# dependencies = []", '# dependencies = []\n#\n# [tool.benchbook]\n# needs = ["cpu", "accelerator"]'
    )
    .replace("steps = 4", 'mode = "plain"\nsteps = 4'),
)
DECLARED = """machines = ["nvidia-h200-141gb", "cpu-test"]

[[script]]
name = "add.py"
config = { model_type = "bert", num_hidden_layers = "$steps" }
training = { batch = "$steps", sequence = 16 }
values = { peak = "peak_allocated", "add.reserved_peak" = "peak_reserved" }

[[script.case]]
where = { mode = "lean" }
training = { checkpointing = true }
values = { "add.allocated" = "moments.step.held" }

[[script.case]]
on = "cpu"
training = { sequence = 8 }
"""
METHODS = f"""machines = ["{H200}", "{CPU}"]

[[script]]
name = "methods.py"
config = {{ model_type = "bert" }}
training = {{ batch = "$batch_size", sequence = 512 }}
values = {{ peak_memory = "peak_allocated", "train.allocated_peak" = "peak_allocated" }}
"""


def adding(root: Path, declared: str = DECLARED) -> Project:
    """A project of one script, measured on a CPU, with what is to be predicted of it."""
    project = make_project(root, ADDING)
    write(
        project.docs / "en/sums.md",
        PAGE.replace("add.py#total", "add.py?mode=plain#total").replace(
            "add.py#add", "add.py?mode=plain#add"
        ),
    )
    write(project.snippets / "sums/predictions.toml", declared)
    return project


def multiplied(question: Question) -> Answer:
    """A GiB for each sample of a batch, half of it for a method that is lean or checkpoints; 5 % more reserved.

    It fits the room that the machine has.
    """
    lean = any(word in question.variant for word in ("lean", "checkpointing"))
    peak = int(question.workload["batch"]) * 2**30 // (2 if lean else 1) + 2**26
    reserved = None if question.device == "cpu" else peak * 21 // 20
    moments = {"backward": {"peak": peak, "held": 2**20}, "step": {"peak": 2**21, "held": 2**19}}
    categories = {"weights": peak // 4, "activations": peak - peak // 4}
    fits = None if question.room is None or reserved is None else reserved <= question.room
    return Answer("backward", peak, reserved, categories, moments, 0, fits)


def predict(project: Project, stamp: Stamp = STAMP, **options: Any) -> list[Outcome]:
    """Make the predictions of a project."""
    return list(make_predictions(Project(project.root), multiplied, stamp, **options))


def predicted_handbook(root: Path, declared: str = METHODS) -> Project:
    """The small handbook, with predictions for a GPU that nobody measured on, and for the CPU."""
    project = copy_handbook(root)
    write(project.snippets / "memory/predictions.toml", declared)
    predict(project)
    return project


def said(outcomes: list[Outcome]) -> Mapping[tuple[str, str], str]:
    """What became of each variant on each machine."""
    return {(one.machine, one.variant): one.what for one in outcomes}
