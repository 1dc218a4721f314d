"""The caching allocator hands out blocks and takes segments as CUDA's does."""

from __future__ import annotations

from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from benchbook.predictor.caching_allocator import MIB, CachingAllocator, rounded


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


@given(st.lists(st.tuples(st.integers(1, 64 * MIB), st.integers(0, 5)), max_size=60))
def test_any_order_of_requests_and_releases_adds_up(requests: list[tuple[int, int]]) -> None:
    allocator = CachingAllocator()
    alive: list[tuple[int, int]] = []
    for size, releases in requests:
        alive.append((size, allocator.allocate(size)))
        for _ in range(min(releases, len(alive))):
            allocator.release(alive.pop(releases % len(alive))[1])
        held = sum(allocator.size_of(address) for _, address in alive)
        assert allocator.allocated == held >= sum(rounded(size) for size, _ in alive)
        assert held <= allocator.reserved
        spans = sorted((address, address + allocator.size_of(address)) for _, address in alive)
        assert all(end <= start for (_, end), (start, _) in pairwise(spans))
    for _, address in alive:
        allocator.release(address)
    assert allocator.allocated == 0
