"""Tell how a script ended: what an exception means, and what a metric must be."""

from __future__ import annotations

import ast
import errno
import linecache
import math
import traceback
from collections.abc import Callable, Iterator, Mapping, Sequence
from types import TracebackType
from typing import Any

from benchbook.content.records import NO_ROOM
from benchbook.recording.jobs import FAILED, MOST_SEEDS, OUT_OF_MEMORY, Failure
from benchbook.statistics.summary import median

LONGEST = 500
MEMORY_WORDS = (
    "DefaultCPUAllocator: can't allocate memory",
    "DefaultCPUAllocator: not enough memory",
    "CUDA out of memory",
    "CUDA error: out of memory",
    "CUDA driver error: out of memory",
    "Triton Error [CUDA]: out of memory",
    # By NCCL, and by the libraries that find no room for their handles and workspaces.
    "'out of memory'",
    "CUBLAS_STATUS_ALLOC_FAILED",
    "CUDNN_STATUS_ALLOC_FAILED",
    "CUSOLVER_STATUS_ALLOC_FAILED",
    "HIP out of memory",
    "HIP error: out of memory",
    "XPU out of memory",
    "MPS backend out of memory",
)
MEMORY_ERRORS = frozenset({"OutOfMemoryError", "MemoryError"})
SAME_SHOWN = "fix the script, which fails alike when run by hand"
MAKE_ROOM = "make room where it writes, and record it again"
SMALLER = "make it smaller, or use a machine with more memory"
ENDED_BY_OTHERS = "see whether something on this machine ends processes, and record it again"
TO_THE_END = "let it run to the end of its checks, and raise an error where it cannot"


def outcome_of(error: BaseException) -> str:
    """OUT_OF_MEMORY for an exception by which Python or torch says so, else FAILED."""
    for current in _with_causes(error):
        names = {kind.__name__ for kind in type(current).__mro__}
        if names & MEMORY_ERRORS or any(words in _text(current) for words in MEMORY_WORDS):
            return OUT_OF_MEMORY
    return FAILED


def _with_causes(error: BaseException) -> Iterator[BaseException]:
    """An exception, and those beneath it."""
    seen: set[int] = set()
    current: BaseException | None = error
    while current is not None and id(current) not in seen:
        seen.add(id(current))
        yield current
        # An error raised while handling another does not undo it; one raised `from None` does.
        current = current.__cause__ or (None if current.__suppress_context__ else current.__context__)


def _fix_for(error: BaseException) -> str:
    """What to do about an exception of which no more is known than its class and its number."""
    if outcome_of(error) == OUT_OF_MEMORY:
        return SMALLER
    if any(isinstance(one, OSError) and one.errno in NO_ROOM for one in _with_causes(error)):
        return MAKE_ROOM
    return SAME_SHOWN


def _text(value: object, say: Callable[[object], str] = str) -> str:
    """What `say` makes of an exception, or of what a script gave it; empty where that raises another."""
    try:
        return say(value)
    except BaseException:  # a script's own, which may be anything
        return ""


def _line_in(script: str, trace: TracebackType | None) -> int:
    """The innermost line of `script` that a traceback passes through, 1 if it does not."""
    lines = [line for frame, line in traceback.walk_tb(trace) if frame.f_code.co_filename == script]
    return lines[-1] if lines else 1


def explain(error: BaseException, script: str, cell: str) -> tuple[str, Failure]:
    """How a script ended by an exception that left `cell`, and what that says to its author."""
    try:
        return outcome_of(error), _explained(error, script, cell)
    except BaseException:  # its class can make anything of what it is asked
        what = f"an exception in the cell `{cell}` raises another when it is looked at"
        return FAILED, Failure(_line_in(script, error.__traceback__), what, SAME_SHOWN)


def explain_own(error: BaseException) -> Failure:
    """What an exception that came up between the cells, in lines of the recorder, says to whoever records."""
    if isinstance(error, OSError) and error.errno == errno.EMFILE:
        what = "the script leaves its process no file to open, and what it held cannot be read"
        return Failure(
            1, what, "close what it opens, and leave the limit of open files (RLIMIT_NOFILE) as it is"
        )
    what = f"the recorder itself failed ({type(error).__name__}: {_text(error)})"
    return Failure(1, what, "report this as a fault of benchbook")


def _explained(error: BaseException, script: str, cell: str) -> Failure:
    line = _line_in(script, error.__traceback__)
    name = type(error).__name__
    text = " ".join(_text(error).split())[:LONGEST]
    if isinstance(error, SystemExit):
        code = _text(error.code, repr) or "unknown"
        what = f"the script left in the cell `{cell}` (exit code {code}) before its checks had completed"
        return Failure(line, what, TO_THE_END)
    if isinstance(error, AssertionError):
        held = linecache.getline(script, line).strip()
        what = f"a check does not hold in the cell `{cell}`: {text or held}"
        return Failure(line, what, "fix the script, or the check if it asks too much")
    if isinstance(error, (DeprecationWarning, PendingDeprecationWarning, FutureWarning)):
        what = f"it uses something deprecated in the cell `{cell}` ({name}: {text})"
        return Failure(line, what, "use what replaces it")
    if isinstance(error, SyntaxError) and error.filename == script:
        return Failure(
            error.lineno or line, f"the cell `{cell}` is not valid Python ({error.msg})", "fix the syntax"
        )
    return Failure(line, f"{name} in the cell `{cell}`{text and f': {text}'}", _fix_for(error))


def shown_traceback(error: BaseException, script: str) -> str:
    """The traceback as Python prints it, without the frames of the worker above the script's own.

    Empty where Python cannot print it, for what the class of the exception makes of it.
    """
    return _text(error, lambda _: _traceback(error, script))


def _traceback(error: BaseException, script: str) -> str:
    trace = error.__traceback__
    while trace is not None and trace.tb_frame.f_code.co_filename != script:
        trace = trace.tb_next
    kept = error.with_traceback(trace) if trace is not None else error
    return "".join(traceback.format_exception(type(kept), kept, kept.__traceback__))


class MetricError(Exception):
    """A declared metric that the script does not yield as it should; carries the failure."""

    def __init__(self, failure: Failure) -> None:
        super().__init__(failure.what)
        self.failure = failure


def read_metrics(names: Sequence[str], values: Mapping[str, Any], source: str) -> dict[str, Any]:
    """The declared metrics among the script's globals, as plain numbers and lists of them.

    Raises:
        MetricError: One is missing, no number, or not finite.
    """
    return {name: _metric(name, values, source) for name in names}


def read_blocks(name: str, value: Any, source: str) -> list[float]:
    """The values of a metric that is timed in blocks, as `read_metrics` found them.

    Raises:
        MetricError: It is one number.
    """
    line = assigned_on(name, source)
    if not isinstance(value, list):
        fix = "give it a list with the value of each timed block, or leave `blocks` out of its declaration"
        raise MetricError(Failure(line, f"the metric `{name}` has blocks, and is one number", fix))
    if any(isinstance(item, bool) for item in value) or not math.isfinite(median(value)):
        fix = "give it a list of numbers, such as seconds"
        raise MetricError(Failure(line, f"the blocks of the metric `{name}` have no median", fix))
    return value


def check_seeds(name: str, value: Any, source: str) -> None:
    """Raise MetricError unless the metric, as `read_metrics` found it, has a number for each of few seeds."""
    if isinstance(value, list) and not any(isinstance(item, bool) for item in value):
        if len(value) <= MOST_SEEDS:
            return
        fix = f"take {MOST_SEEDS} at most, or leave `seeds` out of its declaration"
        what = f"the metric `{name}` has {len(value)} seeds"
    else:
        fix = "give it a list with the number of each seed, or leave `seeds` out of its declaration"
        what = f"the metric `{name}` does not have a number for each seed"
    raise MetricError(Failure(assigned_on(name, source), what, fix))


def _metric(name: str, values: Mapping[str, Any], source: str) -> Any:
    line = assigned_on(name, source)
    if name not in values:
        fix = f"assign `{name}` at the top level, or remove it from [tool.benchbook.metrics]"
        raise MetricError(Failure(line, f"the metric `{name}` was never assigned", fix))
    value = values[name]
    if issubclass(type(value), list):
        # As lists do it, whatever a class below them makes of it.
        value = list.copy(value)
        if not value:
            raise MetricError(
                Failure(line, f"the metric `{name}` is an empty list", "give it a value per step")
            )
        return [_number(f"{name}[{index}]", item, line) for index, item in enumerate(value)]
    return _number(name, value, line)


def _number(name: str, value: Any, line: int) -> bool | int | float:
    kind = type(value)
    if kind is bool:
        return bool(value)
    # Of a class below a number (an enumeration, say) the number: what the class makes of it can be anything.
    if issubclass(kind, int):
        whole = int.__int__(value)
        try:
            float(whole)
        except OverflowError:
            fix = "give it in a larger unit"
            raise MetricError(Failure(line, f"the metric `{name}` is too large a number", fix)) from None
        return whole
    if issubclass(kind, float):
        number = float.__float__(value)
        if math.isfinite(number):
            return number
        fix = "find where it stops being finite, and assert that it is in `checks`"
        raise MetricError(Failure(line, f"the metric `{name}` is {number}", fix))
    fix = "make it a number, or a flat list of numbers (`.item()` of a tensor)"
    raise MetricError(Failure(line, f"the metric `{name}` is a {kind.__name__}", fix))


def assigned_on(name: str, source: str) -> int:
    """The last line of `source` that assigns `name` at the top level or below, 1 if none does."""
    try:
        tree = ast.parse(source)
    except SyntaxError:
        return 1
    lines = [
        node.lineno
        for node in ast.walk(tree)
        if isinstance(node, ast.Name) and node.id == name and isinstance(node.ctx, ast.Store)
    ]
    return max(lines, default=1)
