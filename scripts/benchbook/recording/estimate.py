"""Estimate how long a run takes on a GPU it never ran on, from the work that its script declares: a roofline.

Williams, Waterman and Patterson (2009), "Roofline: an insightful visual performance model for multicore
architectures": a device is busy for as long as its arithmetic or its memory needs, whichever is longer.
"""

from __future__ import annotations

from collections.abc import Iterator

from benchbook.content.arithmetic import NotArithmeticError, evaluate
from benchbook.content.problems import BenchbookError, Problem
from benchbook.content.script import Script, Variant
from benchbook.machines.gpus import Sheet

# Of the sheet's rates, what models of this size come to. The best published trainings reach 0.6 in bf16,
# eager ones of a billion parameters less; without tensor cores arithmetic is so slow that little else counts.
SHARE = {"fp32": 0.6, "tf32": 0.4, "bf16": 0.4, "fp8": 0.4, "bytes": 0.6}
# Random weights drawn on the host: 335 million of BERT-large took 2.3 s, 1.24 billion of Llama 3.2 10.9 s.
HOST_VALUES_PER_SECOND = 1.2e8
# A context, the first kernels of each library, and what a script imports that cannot be imported ahead.
START_SECONDS = 2.0
# Ten times what any script has: a check computes them all.
MOST_ESTIMATES = 2000
# Formats that a device without them computes in the next wider one.
WIDER = {"fp8": "bf16", "tf32": "fp32", "bf16": "fp32"}


def expected_seconds(script: Script, variant: Variant, sheet: Sheet) -> float | None:
    """How long one run of a variant may take on a device, in seconds; None where its script declares no work.

    Parameters:
        script: Whose.
        variant: As it runs there.
        sheet: What the device can do.

    Raises:
        BenchbookError: A declared expression has no value; with its line.
    """
    if not script.metadata.work:
        return None
    amounts = work_of(script, variant)
    moving = amounts.get("bytes", 0.0) / (sheet.gigabytes_per_second * 1e9 * SHARE["bytes"])
    return (
        START_SECONDS
        + amounts.get("host_values", 0.0) / HOST_VALUES_PER_SECOND
        + max(_computing(amounts, sheet), moving)
        + amounts.get("seconds", 0.0)
    )


def work_of(script: Script, variant: Variant) -> dict[str, float]:
    """What one run of a variant does, by the keys of its script's `work`.

    Raises:
        BenchbookError: A declared expression has no value; with its line.
    """
    amounts = {}
    for key, expression in script.metadata.work.items():
        try:
            amounts[key] = evaluate(expression, variant.parameters)
            if amounts[key] < 0:
                raise NotArithmeticError(f"comes to {amounts[key]:g}, less than nothing")
        except NotArithmeticError as error:
            what = f"the work `{key}` of variant {variant.name} {error}"
            line = script.metadata.line_of(key)
            raise BenchbookError(Problem(script.path, line, what, "correct the expression")) from error
    return amounts


def work_problems(script: Script) -> Iterator[Problem]:
    """The first thing that is wrong with a script's `work` on each kind of machine that it may run on."""
    if not script.metadata.work:
        return
    all_kinds = [("accelerator",), *(("accelerator", kind) for kind in script.metadata.on)]
    if (count := len(all_kinds) * len(script.metadata.matrix)) > MOST_ESTIMATES:
        what = f"`work` is computed for {count} variants on all kinds of machine"
        what += f", and {MOST_ESTIMATES} are the most"
        fix = "sweep fewer points, or set parameters for fewer kinds of machine"
        yield Problem(script.path, script.metadata.line_of("work"), what, fix)
        return
    for kinds in all_kinds:
        for variant in script.make_variants(kinds):
            try:
                work_of(script, variant)
            except BenchbookError as error:
                yield from error.problems
                return


def _computing(amounts: dict[str, float], sheet: Sheet) -> float:
    return sum(
        amount / _rate(key, sheet) for key, amount in amounts.items() if key in SHARE and key != "bytes"
    )


def _rate(number_format: str, sheet: Sheet) -> float:
    while number_format not in sheet.tflops:
        number_format = WIDER[number_format]
    return sheet.tflops[number_format] * 1e12 * SHARE[number_format]
