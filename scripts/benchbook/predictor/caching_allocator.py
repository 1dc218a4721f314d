"""The rules by which CUDA's caching allocator of torch turns requests into blocks and segments.

Constants and rules are those of `c10/cuda/CUDACachingAllocator.cpp` (`DeviceCachingAllocator::malloc`,
`get_free_block`, `should_split`, `free_block`, `try_merge_blocks`, `release_cached_blocks`) with default
settings: no `expandable_segments`, no `max_split_size_mb`, no rounding to powers of two.
"""

from __future__ import annotations

import bisect
from collections import defaultdict
from dataclasses import dataclass

MIB = 2**20
BLOCK = 512
SMALL = MIB
SMALL_SEGMENT = 2 * MIB
LARGE_SEGMENT = 20 * MIB
OWN_SEGMENT = 10 * MIB
SEGMENT_ROUNDING = 2 * MIB
# Segments lie far apart: no block is ever merged across two of them.
GAP = 2**30


def round_size(size: int) -> int:
    """The bytes of the block that serves a request (`round_size`)."""
    return max(BLOCK, -(-size // BLOCK) * BLOCK)


def segment_for(size: int) -> int:
    """The bytes asked of the driver when no free block serves a rounded size (`get_allocation_size`)."""
    if size <= SMALL:
        return SMALL_SEGMENT
    if size < OWN_SEGMENT:
        return LARGE_SEGMENT
    return -(-size // SEGMENT_ROUNDING) * SEGMENT_ROUNDING


# The stream whose requests it serves, and whether these are small.
Pool = tuple[int, bool]


@dataclass(slots=True)
class _Block:
    size: int
    pool: Pool
    free: bool
    before: int | None = None
    after: int | None = None


class CachingAllocator:
    """Allocated and reserved bytes, now and at most, of a device.

    Parameters:
        limit: The bytes of segments that the device has room for; None: it never runs out of memory.

    Attributes:
        fits: Whether it never ran out of memory. Once it did, it goes on as if there were no limit: its other
            figures are what the work would need.
    """

    def __init__(self, limit: int | None = None) -> None:
        self.allocated = self.allocated_peak = 0
        self.reserved = self.reserved_peak = 0
        self.fits = True
        self._limit = limit
        self._blocks: dict[int, _Block] = {}
        # Free blocks of each pool as (size, address): the first that is large enough is the best fit.
        self._free: defaultdict[Pool, list[tuple[int, int]]] = defaultdict(list)
        self._end = 0

    def allocate(self, size: int, stream: int = 0) -> int:
        """Serve a request of so many bytes; returns the block's address.

        What one stream has freed serves no other (`BlockPool`, whose blocks compare by stream first).
        """
        size = round_size(size)
        small = size <= SMALL
        pool = stream, small
        free = self._free[pool]
        place = bisect.bisect_left(free, (size, 0))
        address = free.pop(place)[1] if place < len(free) else self._new_segment(size, pool)
        block = self._blocks[address]
        remaining = block.size - size
        if (small and remaining >= BLOCK) or (not small and remaining > SMALL):
            self._split(address, block, size)
        block.free = False
        self.allocated += block.size
        self.allocated_peak = max(self.allocated_peak, self.allocated)
        return address

    def release(self, address: int) -> None:
        """Take a block back and merge it with its free neighbours."""
        block = self._blocks[address]
        self.allocated -= block.size
        block.free = True
        if block.after is not None and self._blocks[block.after].free:
            self._absorb(address, self._take_free(block.after))
        if block.before is not None and self._blocks[block.before].free:
            address = self._take_free(block.before)
            after = self._blocks[address].after
            assert after is not None
            self._absorb(address, after)
        bisect.insort(self._free[block.pool], (self._blocks[address].size, address))

    def empty(self) -> None:
        """Return every free segment (`torch.cuda.empty_cache`); the peak of what is reserved counts anew."""
        self._give_back()
        self.reserved_peak = self.reserved

    def size_of(self, address: int) -> int:
        """The bytes of an allocated block."""
        return self._blocks[address].size

    def _new_segment(self, size: int, pool: Pool) -> int:
        segment = segment_for(size)
        if self._exceeds(segment):
            self._give_back()
            if self._exceeds(segment):
                self.fits, self._limit = False, None
        address = self._end
        self._end += segment + GAP
        self._blocks[address] = _Block(segment, pool, free=True)
        self.reserved += segment
        self.reserved_peak = max(self.reserved_peak, self.reserved)
        return address

    def _exceeds(self, segment: int) -> bool:
        return self._limit is not None and self.reserved + segment > self._limit

    def _give_back(self) -> None:
        """Return every segment without an allocated block to the device, of whichever stream."""
        for pool, free in self._free.items():
            kept = []
            for size, address in free:
                block = self._blocks[address]
                if block.before is None and block.after is None:
                    del self._blocks[address]
                    self.reserved -= size
                else:
                    kept.append((size, address))
            self._free[pool] = kept

    def _split(self, address: int, block: _Block, size: int) -> None:
        rest = address + size
        self._blocks[rest] = _Block(
            block.size - size, block.pool, free=True, before=address, after=block.after
        )
        if block.after is not None:
            self._blocks[block.after].before = rest
        block.after = rest
        block.size = size
        bisect.insort(self._free[block.pool], (self._blocks[rest].size, rest))

    def _take_free(self, address: int) -> int:
        block = self._blocks[address]
        free = self._free[block.pool]
        del free[bisect.bisect_left(free, (block.size, address))]
        return address

    def _absorb(self, address: int, next_address: int) -> None:
        block, absorbed = self._blocks[address], self._blocks.pop(next_address)
        block.size += absorbed.size
        block.after = absorbed.after
        if absorbed.after is not None:
            self._blocks[absorbed.after].before = address
