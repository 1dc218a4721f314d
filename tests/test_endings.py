"""How a script ended is told so that its author knows what to do."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from benchbook.recorder.endings import (
    MetricError,
    assigned_on,
    explain,
    outcome_of,
    read_metrics,
    shown_traceback,
)
from benchbook.recorder.jobs import FAILED, OUT_OF_MEMORY


class OutOfMemoryError(RuntimeError):
    """As torch has one."""


def raised(code: str, **names: object) -> BaseException:
    with pytest.raises(BaseException) as caught:  # noqa: PT011
        exec(compile(code, "small.py", "exec"), dict(names))
    return caught.value


@pytest.mark.parametrize(
    "error",
    [
        MemoryError(),
        OutOfMemoryError("CUDA out of memory. Tried to allocate 2.00 GiB"),
        RuntimeError(
            "[enforce fail at alloc_cpu.cpp:127] . DefaultCPUAllocator: can't allocate memory: you tried"
        ),
        RuntimeError("MPS backend out of memory (MPS allocated: 1 GB)"),
        RuntimeError("CUDA error: out of memory"),
    ],
)
def test_out_of_memory_is_known_by_class_or_words(error: BaseException) -> None:
    assert outcome_of(error) == OUT_OF_MEMORY


def test_out_of_memory_beneath_another_error_is_still_that() -> None:
    assert (
        outcome_of(
            raised("try:\n    raise MemoryError\nexcept MemoryError as e:\n    raise ValueError from e")
        )
        == OUT_OF_MEMORY
    )
    assert (
        outcome_of(raised("try:\n    raise MemoryError\nexcept MemoryError:\n    raise ValueError"))
        == OUT_OF_MEMORY
    )


def test_out_of_memory_that_the_script_dealt_with_is_not() -> None:
    error = raised("try:\n    raise MemoryError\nexcept MemoryError:\n    raise ValueError from None")
    assert outcome_of(error) == FAILED


def test_the_innermost_line_of_the_script_is_named() -> None:
    error = raised("def fall():\n    int('x')\n\nfall()")
    assert explain(error, "small.py", "work").line == 2


def test_out_of_memory_is_mended_by_less() -> None:
    assert "smaller" in explain(raised("raise MemoryError('no')"), "small.py", "work").mend


def test_a_message_of_many_lines_becomes_one_of_bounded_length() -> None:
    what = explain(raised("raise ValueError('long\\n' * 1000)"), "small.py", "work").what
    assert "\n" not in what
    assert len(what) < 600


def test_a_traceback_begins_with_the_script() -> None:
    lines = shown_traceback(raised("1 / 0"), "small.py").splitlines()
    assert lines[1].startswith('  File "small.py", line 1')


def test_the_line_of_a_metric_is_where_it_was_last_assigned() -> None:
    assert assigned_on("loss", "loss = 1\nfor loss in [2]:\n    pass\nother = loss") == 2


def test_numbers_of_numpy_are_numbers() -> None:
    assert read_metrics(["a", "b"], {"a": np.float64(0.5), "b": [np.float64(1.0)]}, "") == {
        "a": 0.5,
        "b": [1.0],
    }


def test_a_tensor_is_told_how_to_become_a_number() -> None:
    with pytest.raises(MetricError) as caught:
        read_metrics(["loss"], {"loss": torch.tensor(1.0)}, "loss = 1")
    assert "Tensor" in caught.value.failure.what
    assert ".item()" in caught.value.failure.mend
