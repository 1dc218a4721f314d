"""What the benchmarks of this package found: one result a line, which the report of a change compares."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path

from benchbook.content.formats import Stored
from benchbook.content.problems import BenchbookError, Problem
from benchbook.content.revisions import BENCHMARKS
from benchbook.machines.description import describe


@dataclass(frozen=True)
class BenchmarkResult(Stored):
    """A figure that a benchmark found.

    Parameters:
        benchmark: Which of `scripts/benchmarks`, and what it was asked for.
        quantity: What was measured.
        value: The figure.
        unit: Its unit, such as "s"; "" for a ratio.
        bar: What it is to stay below.
        machine: Where it was measured.
        measured: On which day.
    """

    benchmark: str
    quantity: str
    value: float
    unit: str
    bar: float
    machine: str
    measured: str

    @property
    def key(self) -> tuple[str, str, str]:
        """What a later result of the same replaces."""
        return self.benchmark, self.quantity, self.machine


def result(benchmark: str, quantity: str, value: float, unit: str, bar: float) -> BenchmarkResult:
    """A result of this machine and day."""
    today = datetime.now(UTC).date().isoformat()
    return BenchmarkResult(benchmark, quantity, round(value, 3), unit, bar, describe(None).name, today)


def load_results(root: Path) -> tuple[BenchmarkResult, ...]:
    """The results kept in the tree at `root`; none where it keeps none.

    Raises:
        BenchbookError: The file holds something else.
    """
    from pydantic import ValidationError

    from benchbook.content.validation import adapter

    path = root / BENCHMARKS
    if not path.is_file():
        return ()
    try:
        return adapter(tuple[BenchmarkResult, ...]).validate_json(path.read_bytes())
    except ValidationError as error:
        what = f"holds no results of benchmarks ({error.errors(include_url=False)[0]['msg']})"
        raise BenchbookError(
            Problem(BENCHMARKS, 1, what, "run `make benchmarks KEEP=1`, or restore it")
        ) from error


def keep_results(root: Path, found: Iterable[BenchmarkResult]) -> None:
    """Put `found` in the place of what the same benchmarks found on this machine before."""
    kept = {one.key: one for one in (*load_results(root), *found)}
    lines = (json.dumps(asdict(one), ensure_ascii=False) for _, one in sorted(kept.items()))
    (root / BENCHMARKS).parent.mkdir(parents=True, exist_ok=True)
    (root / BENCHMARKS).write_text("[\n" + ",\n".join(f"  {line}" for line in lines) + "\n]\n", "utf-8")
