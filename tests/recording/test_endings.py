"""How a script ended is told so that its author knows what to do."""

from __future__ import annotations

import enum
import os
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
import torch

from benchbook.content.records import NO_ROOM
from benchbook.recording.endings import (
    MetricError,
    assigned_on,
    explain,
    outcome_of,
    read_metrics,
    shown_traceback,
)
from benchbook.recording.jobs import FAILED, OUT_OF_MEMORY


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
    assert explain(error, "small.py", "work")[1].line == 2


def test_out_of_memory_is_fixed_by_less() -> None:
    assert "smaller" in explain(raised("raise MemoryError('no')"), "small.py", "work")[1].fix


@pytest.mark.parametrize("number", NO_ROOM)
def test_a_script_that_finds_no_room_to_write_is_not_at_fault(number: int) -> None:
    names = {"full": OSError(number, os.strerror(number))}
    for code in ("raise full", "try:\n    raise full\nexcept OSError as e:\n    raise ValueError from e"):
        outcome, failure = explain(raised(code, **names), "small.py", "work")
        assert outcome == FAILED
        assert failure.fix == "make room where it writes, and record it again"


def test_a_message_of_many_lines_becomes_one_of_bounded_length() -> None:
    what = explain(raised("raise ValueError('long\\n' * 1000)"), "small.py", "work")[1].what
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


class Dtype(enum.IntEnum):
    """An enumeration whose members are numbers."""

    BF16 = 2


class Odd(int):
    """A number that does not say which."""

    def __int__(self) -> int:
        raise ValueError("no")

    def __float__(self) -> float:
        raise ValueError("no")


class Boundless(float):
    """A number that says it is another."""

    def __float__(self) -> float:
        return float("nan")


class Series(list[int]):
    """A list that cannot be gone through."""

    def __iter__(self) -> Iterator[int]:
        raise ValueError("no")


class Impostor:
    """What only claims to be a number."""

    @property
    def __class__(self) -> Any:
        return int


def test_what_is_below_a_number_is_that_number_whatever_its_class_makes_of_it() -> None:
    values = {"a": Dtype.BF16, "b": Odd(3), "c": Boundless(0.5), "d": Series([1, 2]), "e": [Odd(4)]}
    found = read_metrics(list(values), values, "")
    assert found == {"a": 2, "b": 3, "c": 0.5, "d": [1, 2], "e": [4]}
    plain = [
        type(item) for value in found.values() for item in (value if isinstance(value, list) else [value])
    ]
    assert set(plain) == {int, float}


def test_what_only_claims_to_be_a_number_is_refused() -> None:
    with pytest.raises(MetricError, match="`n` is a Impostor"):
        read_metrics(["n"], {"n": Impostor()}, "n = 1")


def test_a_tensor_is_told_how_to_become_a_number() -> None:
    with pytest.raises(MetricError) as caught:
        read_metrics(["loss"], {"loss": torch.tensor(1.0)}, "loss = 1")
    assert "Tensor" in caught.value.failure.what
    assert ".item()" in caught.value.failure.fix


def test_a_number_that_no_float_can_hold_is_refused() -> None:
    with pytest.raises(MetricError, match="`flops` is too large a number"):
        read_metrics(["flops"], {"flops": 10**5000}, "flops = 1")
    assert read_metrics(["flops"], {"flops": 10**24}, "") == {"flops": 10**24}


def test_a_number_keeps_its_kind_and_its_sign() -> None:
    values = {"flag": True, "zero": -0.0, "flags": [True, False]}
    assert repr(read_metrics(list(values), values, "")) == repr(values)


def test_an_integer_of_numpy_is_told_how_to_become_a_number() -> None:
    with pytest.raises(MetricError, match="`n` is a int64"):
        read_metrics(["n"], {"n": np.int64(1)}, "n = 1")


@pytest.mark.parametrize(
    "words",
    [
        "CUDA driver error: out of memory",
        "CUDA error: CUBLAS_STATUS_ALLOC_FAILED when calling `cublasCreate(handle)`",
        "NCCL error, unhandled cuda error: Cuda failure 2 'out of memory'",
        "Triton Error [CUDA]: out of memory",
    ],
)
def test_a_library_that_finds_no_memory_says_so_in_its_own_words(words: str) -> None:
    assert outcome_of(RuntimeError(words)) == OUT_OF_MEMORY
