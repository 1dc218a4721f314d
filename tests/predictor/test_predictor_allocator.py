"""The caching allocator hands out blocks and takes segments as CUDA's does."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from benchbook.predictor.caching_allocator import MIB, CachingAllocator, round_size

pytestmark = pytest.mark.torch


def test_the_smallest_block_has_512_bytes_in_a_segment_of_2_mib() -> None:
    allocator = CachingAllocator()
    allocator.allocate(1)
    assert (allocator.allocated, allocator.reserved) == (512, 2 * MIB)


def test_more_than_1_mib_comes_from_a_segment_of_20_mib() -> None:
    allocator = CachingAllocator()
    allocator.allocate(MIB + 1)
    assert (allocator.allocated, allocator.reserved) == (MIB + 512, 20 * MIB)


def test_from_10_mib_on_a_request_gets_a_segment_of_its_own_in_steps_of_2_mib() -> None:
    allocator = CachingAllocator()
    allocator.allocate(11 * MIB)
    assert allocator.reserved == 12 * MIB


def test_a_rest_of_at_most_1_mib_stays_with_its_block() -> None:
    allocator = CachingAllocator()
    allocator.allocate(11 * MIB)
    assert allocator.allocated == 12 * MIB


def test_what_was_released_serves_the_next_request() -> None:
    allocator = CachingAllocator()
    allocator.release(allocator.allocate(30 * MIB))
    allocator.allocate(30 * MIB)
    assert allocator.reserved == 30 * MIB


def test_the_smallest_free_block_that_suffices_is_taken() -> None:
    allocator = CachingAllocator()
    large, small = allocator.allocate(40 * MIB), allocator.allocate(20 * MIB)
    allocator.release(large)
    allocator.release(small)
    assert allocator.allocate(18 * MIB) == small


def test_neighbours_merge_when_both_are_free() -> None:
    allocator = CachingAllocator()
    blocks = [allocator.allocate(5 * MIB) for _ in range(4)]
    for block in (blocks[0], blocks[2], blocks[1], blocks[3]):
        allocator.release(block)
    allocator.allocate(20 * MIB)
    assert allocator.reserved == 20 * MIB


def test_small_requests_leave_large_segments_alone() -> None:
    allocator = CachingAllocator()
    allocator.release(allocator.allocate(5 * MIB))
    allocator.allocate(512)
    assert allocator.reserved == 22 * MIB


def test_the_peak_outlives_what_was_released() -> None:
    allocator = CachingAllocator()
    allocator.release(allocator.allocate(4 * MIB))
    assert (allocator.allocated, allocator.allocated_peak) == (0, 4 * MIB)


def test_what_one_stream_released_serves_no_other() -> None:
    allocator = CachingAllocator()
    allocator.release(allocator.allocate(30 * MIB))
    allocator.allocate(30 * MIB, stream=1)
    assert allocator.reserved == 60 * MIB


def test_before_it_runs_out_of_memory_it_gives_free_segments_back() -> None:
    allocator = CachingAllocator(limit=50 * MIB)
    allocator.release(allocator.allocate(30 * MIB))
    allocator.allocate(40 * MIB)
    assert (allocator.fits, allocator.reserved, allocator.reserved_peak) == (True, 40 * MIB, 40 * MIB)


def test_it_gives_back_those_of_small_requests_and_other_streams_too() -> None:
    allocator = CachingAllocator(limit=32 * MIB)
    for block in (allocator.allocate(512), allocator.allocate(20 * MIB, stream=1)):
        allocator.release(block)
    allocator.allocate(32 * MIB)
    assert (allocator.fits, allocator.reserved) == (True, 32 * MIB)


def test_a_segment_of_which_a_part_is_in_use_stays() -> None:
    allocator = CachingAllocator(limit=40 * MIB)
    blocks = [allocator.allocate(5 * MIB) for _ in range(4)]
    for block in blocks[1:]:
        allocator.release(block)
    allocator.allocate(30 * MIB)
    assert (allocator.fits, allocator.reserved) == (False, 50 * MIB)
    allocator.allocate(15 * MIB)
    assert allocator.reserved == 50 * MIB


def test_what_is_left_after_giving_back_serves_later_requests() -> None:
    allocator = CachingAllocator(limit=60 * MIB)
    kept, gone = allocator.allocate(20 * MIB), allocator.allocate(30 * MIB)
    allocator.release(gone)
    allocator.allocate(40 * MIB)
    allocator.release(kept)
    assert allocator.allocate(20 * MIB) == kept
    assert (allocator.allocated, allocator.reserved) == (60 * MIB, 60 * MIB)


def test_the_whole_limit_can_be_used() -> None:
    allocator = CachingAllocator(limit=30 * MIB)
    allocator.allocate(30 * MIB)
    assert allocator.fits


def test_out_of_memory_is_noted_and_the_work_goes_on_as_if_there_were_room() -> None:
    allocator = CachingAllocator(limit=50 * MIB)
    for block in [allocator.allocate(30 * MIB) for _ in range(3)]:
        allocator.release(block)
    allocator.allocate(40 * MIB)
    assert not allocator.fits
    assert (allocator.allocated_peak, allocator.reserved, allocator.reserved_peak) == (
        90 * MIB,
        130 * MIB,
        130 * MIB,
    )


def test_the_peak_of_what_is_reserved_outlives_what_was_given_back() -> None:
    allocator = CachingAllocator(limit=50 * MIB)
    allocator.release(allocator.allocate(50 * MIB))
    allocator.allocate(20 * MIB, stream=1)
    assert (allocator.reserved, allocator.reserved_peak) == (20 * MIB, 50 * MIB)


@given(st.lists(st.tuples(st.integers(1, 64 * MIB), st.integers(0, 5)), max_size=60))
def test_a_limit_that_is_never_reached_changes_nothing(requests: list[tuple[int, int]]) -> None:
    free, limited = CachingAllocator(), CachingAllocator(limit=2**40)
    alive: list[int] = []
    for size, releases in requests:
        alive.append(free.allocate(size))
        assert limited.allocate(size) == alive[-1]
        for _ in range(min(releases, len(alive))):
            address = alive.pop(releases % len(alive))
            free.release(address)
            limited.release(address)
        assert (free.allocated, free.reserved) == (limited.allocated, limited.reserved)
        assert free.reserved == free.reserved_peak


@given(
    st.lists(st.tuples(st.integers(1, 64 * MIB), st.integers(0, 5)), max_size=60),
    st.integers(0, 512 * MIB),
)
def test_under_any_limit_no_more_is_reserved_as_long_as_it_fits(
    requests: list[tuple[int, int]], limit: int
) -> None:
    allocator = CachingAllocator(limit)
    alive: list[int] = []
    for size, releases in requests:
        alive.append(allocator.allocate(size))
        for _ in range(min(releases, len(alive))):
            allocator.release(alive.pop(releases % len(alive)))
        assert allocator.allocated <= allocator.reserved <= allocator.reserved_peak
        assert allocator.fits == (allocator.reserved_peak <= limit)


@given(st.lists(st.tuples(st.integers(1, 64 * MIB), st.integers(0, 5)), max_size=60))
def test_any_order_of_requests_and_releases_adds_up(requests: list[tuple[int, int]]) -> None:
    allocator = CachingAllocator()
    alive: list[tuple[int, int]] = []
    for size, releases in requests:
        alive.append((size, allocator.allocate(size)))
        for _ in range(min(releases, len(alive))):
            allocator.release(alive.pop(releases % len(alive))[1])
        held = sum(allocator.size_of(address) for _, address in alive)
        assert allocator.allocated == held >= sum(round_size(size) for size, _ in alive)
        assert held <= allocator.reserved
        spans = sorted((address, address + allocator.size_of(address)) for _, address in alive)
        assert all(end <= start for (_, end), (start, _) in pairwise(spans))
    for _, address in alive:
        allocator.release(address)
    assert allocator.allocated == 0
