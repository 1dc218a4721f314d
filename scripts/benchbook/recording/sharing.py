"""Divide what a machine has to record among several runners of its kind, as a matrix of a workflow."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from benchbook.recording.plan import Task, expected_minutes, rounded_minutes

# Of a script that was never timed there, half of what it may take at most is as good a guess as any.
SHARE_OF_MOST = 0.5


def matrix(tasks: Sequence[Task], runners: int) -> dict[str, list[dict[str, Any]]]:
    """At most `runners` shares of about the same length, as the `matrix` of a job.

    A script is never divided: its variants are compared within one sitting. The longest goes first, each to
    the runner that has least (Graham 1969, "Bounds on Multiprocessing Timing Anomalies").
    """
    shares: list[list[Task]] = [[] for _ in range(min(runners, len(tasks)))]
    for task in sorted(tasks, key=lambda task: (-_seconds(task), task.script.reference)):
        min(shares, key=lambda share: sum(map(_seconds, share))).append(task)
    return {
        "include": [
            {
                "share": number,
                "scripts": " ".join(sorted(task.script.reference for task in share)),
                "expected_minutes": rounded_minutes(expected_minutes(share)),
            }
            for number, share in enumerate(shares, start=1)
        ]
    }


def _seconds(task: Task) -> float:
    if task.seconds is not None:
        return task.seconds
    return SHARE_OF_MOST * sum(variant.repeats * variant.timeout for variant in task.variants)
