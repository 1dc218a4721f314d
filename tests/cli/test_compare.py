"""`benchbook compare` answers for metrics, variants and sets of records, as a claim would."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from benchbook.cli.compare import find_rows
from benchbook.content.project import Project
from benchbook.query.library import Library
from clones import benchbook
from handbooks import CPU, FIXTURE, GPU, copy_handbook, set_metric

TWO = "memory/methods.py?batch_size=2&method="


def answers(folder: Path, *words: str) -> list[dict[str, object]]:
    done = benchbook(folder, "compare", *words, "--json")
    assert done.returncode == 0, done.stderr
    found: list[dict[str, object]] = json.loads(done.stdout)
    return found


def test_two_metrics_are_compared_on_every_machine() -> None:
    first, second = answers(FIXTURE, f"{TWO}checkpointing#peak_memory", f"{TWO}plain#peak_memory")
    assert (first["machine"], first["a"], first["b"], first["ratio"]) == (CPU, 2 * 2**30, 4 * 2**30, 0.5)
    assert (first["answer"], first["exact"], first["interval"]) == ("A is less", True, None)
    assert second["machine"] == GPU


def test_a_metric_is_compared_with_a_number() -> None:
    (row,) = answers(FIXTURE, f"{TWO}plain#peak_memory", "1 GiB", "--machine", CPU)
    assert (row["answer"], row["unit"], row["b"]) == ("A is greater", "B", 2**30)


def test_variants_are_compared_in_all_that_both_yield() -> None:
    rows = answers(FIXTURE, f"{TWO}checkpointing", f"{TWO}plain", "--machine", CPU)
    assert [row["quantity"] for row in rows] == ["peak_memory", "step_time", "same_weights"]
    assert str(rows[1]["answer"]).startswith("too close to call: 3 pair(s)")
    more = answers(FIXTURE, f"{TWO}checkpointing", f"{TWO}plain", "--machine", CPU, "--meters")
    assert "train.process_memory_peak" in [row["quantity"] for row in more]


def test_machines_and_files_are_sets_of_records(tmp_path: Path) -> None:
    record = tmp_path / "methods.json"
    shutil.copy(Project(FIXTURE).record_path(GPU, "memory/methods.py"), record)
    rows = answers(FIXTURE, CPU, str(record))
    assert {row["variant"] for row in rows} >= {"memory/methods.py method=plain,batch_size=1"}
    assert {row["machine"] for row in rows} == {f"{CPU} | {GPU}"}
    timed = next(row for row in rows if row["quantity"] == "step_time")
    assert timed["doubt"] == "two campaigns"
    assert timed["interval"] is not None


def test_the_same_folder_twice_has_nothing_that_differs() -> None:
    folder = str(Project(FIXTURE).records / CPU)
    assert {row["answer"] for row in answers(FIXTURE, folder, folder)} <= {
        "they are equal",
        "too close to call: 3 pair(s) of runs are fewer than the 8 that decide",
    }


def test_what_was_expected_decides_the_exit_code() -> None:
    words = ("compare", f"{TWO}checkpointing#peak_memory", f"{TWO}plain#peak_memory", "--ratio", "1.5")
    assert benchbook(FIXTURE, *words, "--expect", "less").returncode == 0
    assert benchbook(FIXTURE, *words, "--expect", "greater").returncode == 1


@pytest.mark.parametrize(
    "words",
    [
        ("memory/methods.py#peak_memory", "memory/methods.py#peak_memory"),
        ("memory/none.py#x", "1"),
        ("nowhere", "nowhere"),
        ("a" * 5000, "nowhere"),
        (f"{TWO}plain", CPU),
        (f"{TWO}plain#peak_memory", f"{TWO}plain#step_time"),
        (f"{TWO}plain#peak_memory", "4"),
        (f"{TWO}plain#peak_memory", "4 GiB", "--machine", "none"),
        (f"{TWO}plain#peak_memory", "4 GiB", "--expect", "better"),
    ],
)
def test_what_names_nothing_is_wrong_usage(words: tuple[str, ...]) -> None:
    done = benchbook(FIXTURE, "compare", *words)
    assert done.returncode == 2
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize("text", ["{", "[]", '{"schema": 1}', '{"records": [{"schema": 1}]}', "\x1f\x8bxx"])
def test_a_damaged_file_is_a_line_never_a_traceback(tmp_path: Path, text: str) -> None:
    file = tmp_path / "records.json"
    file.write_text(text, "latin-1")
    done = benchbook(FIXTURE, "compare", CPU, str(file))
    assert done.returncode == 1
    assert "records.json:1: " in done.stderr
    assert "Traceback" not in done.stderr


def test_a_sample_beyond_what_a_float_holds_is_a_line_never_a_traceback(tmp_path: Path) -> None:
    project = copy_handbook(tmp_path)
    set_metric(project, CPU, "peak_memory", {"method=plain,batch_size=2": 10**400})
    done = benchbook(project.root, "compare", f"{TWO}plain#peak_memory", "1 GiB", "--machine", CPU)
    assert done.returncode == 2
    said = " ".join(done.stderr.replace("│", " ").split())
    assert f"`memory/methods.py` has a sample on {CPU} that is beyond 10 to the 308th" in said


def test_what_was_measured_nowhere_is_said() -> None:
    done = benchbook(
        FIXTURE, "compare", "memory/methods.py?method=plain&batch_size=4#peak_memory", "1 B", "--machine", CPU
    )
    assert done.returncode == 1
    assert "nothing was measured" in done.stderr


def test_a_campaign_of_one_script_is_not_that_of_another() -> None:
    library = Library(Project(FIXTURE))
    rows = find_rows(library, f"{TWO}plain#train.seconds", "memory/losses.py#train.seconds", CPU, False)
    assert rows[0].first.campaign != rows[0].second.campaign
