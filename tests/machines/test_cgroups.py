"""A limit of this process's control group counts, and so does that of any above it."""

from __future__ import annotations

from pathlib import Path

import pytest

from benchbook.machines.cgroups import cpu_quota, cpu_weights, memory_limit
from builders import write

GIB = 2**30
# Without a limit, version 1 says so.
UNLIMITED = 9223372036854771712


def fake(root: Path, own: str, files: dict[str, str]) -> tuple[Path, Path]:
    """A folder with the files of control groups, and what tells those of this process."""
    for name, text in files.items():
        write(root / "groups" / name, f"{text}\n")
    return root / "groups", write(root / "own", own)


@pytest.mark.parametrize(
    ("own", "files", "limit"),
    [
        # Version 2: the own group's, that of one above it, the smaller of two, that of no other group.
        ("0::/a/b\n", {"a/b/memory.max": f"{GIB}"}, GIB),
        ("0::/a/b\n", {"a/memory.max": f"{GIB}", "a/b/memory.max": "max"}, GIB),
        ("0::/a/b\n", {"a/memory.max": f"{GIB}", "a/b/memory.max": f"{2 * GIB}"}, GIB),
        ("0::/a\n", {"a/memory.max": "max", "a/b/memory.max": f"{GIB}", "c/memory.max": f"{GIB}"}, None),
        # Version 1, beside an empty version 2.
        ("4:memory:/a/b\n0::/\n", {"memory/a/b/memory.limit_in_bytes": f"{GIB}"}, GIB),
        (
            "4:memory:/a/b\n",
            {"memory/a/memory.limit_in_bytes": f"{GIB}", "memory/a/b/memory.limit_in_bytes": f"{UNLIMITED}"},
            GIB,
        ),
        # A container whose path is that of the host.
        ("0::/docker/1\n", {"memory.max": f"{GIB}"}, GIB),
        ("4:memory:/docker/1\n", {"memory/memory.limit_in_bytes": f"{GIB}"}, GIB),
        # A group outside of what the container sees.
        ("0::/../b\n", {"memory.max": f"{GIB}"}, GIB),
        ("0::/a\n", {}, None),
    ],
)
def test_memory_is_limited_by_the_smallest_limit_from_the_own_group_upwards(
    tmp_path: Path, own: str, files: dict[str, str], limit: int | None
) -> None:
    assert memory_limit(*fake(tmp_path, own, files)) == limit


@pytest.mark.parametrize(
    ("own", "files", "quota"),
    [
        ("0::/a/b\n", {"a/b/cpu.max": "25000 100000"}, 0.25),
        ("0::/a/b\n", {"a/cpu.max": "200000 100000", "a/b/cpu.max": "max 100000"}, 2.0),
        ("0::/a/b\n", {"a/cpu.max": "200000 100000", "a/b/cpu.max": "150000 50000"}, 2.0),
        ("0::/a\n", {"a/cpu.max": "max 100000", "c/cpu.max": "25000 100000"}, None),
        (
            "1:cpu,cpuacct:/a/b\n0::/\n",
            {
                "cpu/a/cpu.cfs_quota_us": "25000",
                "cpu/a/cpu.cfs_period_us": "100000",
                "cpu/a/b/cpu.cfs_quota_us": "-1",
                "cpu/a/b/cpu.cfs_period_us": "100000",
            },
            0.25,
        ),
        ("1:cpu:/\n", {"cpu/cpu.cfs_quota_us": "-1", "cpu/cpu.cfs_period_us": "100000"}, None),
        ("0::/docker/1\n", {"cpu.max": "150000 100000"}, 1.5),
        ("0::/a\n", {}, None),
    ],
)
def test_processors_are_limited_by_the_smallest_quota_from_the_own_group_upwards(
    tmp_path: Path, own: str, files: dict[str, str], quota: float | None
) -> None:
    assert cpu_quota(*fake(tmp_path, own, files)) == quota


def test_a_system_without_control_groups_limits_nothing(tmp_path: Path) -> None:
    nothing = (tmp_path / "groups", tmp_path / "own")
    assert (memory_limit(*nothing), cpu_quota(*nothing)) == (None, None)


@pytest.mark.parametrize(
    ("own", "files", "weights"),
    [
        (
            "0::/a/b\n",
            {"a/b/cpu.weight": "100\n", "a/b/cpu.idle": "0\n", "a/cpu.weight": "20\n"},
            ["100", "20", "0"],
        ),
        ("1:cpu,cpuacct:/a\n", {"cpu/a/cpu.shares": "2\n", "cpu/cpu.shares": "1024\n"}, ["2", "1024"]),
        ("0::/a\n", {}, []),
    ],
)
def test_the_weights_of_a_process_s_groups_are_told_the_own_first(
    tmp_path: Path, own: str, files: dict[str, str], weights: list[str]
) -> None:
    assert cpu_weights(*fake(tmp_path, own, files)) == weights
