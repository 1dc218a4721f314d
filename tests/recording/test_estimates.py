"""A plan has minutes for a GPU that nothing ran on, from what its scripts declare to do, and later from records."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from benchbook.checking.checks import check_project
from benchbook.content.arithmetic import NotArithmeticError, evaluate, names_in
from benchbook.content.problems import BenchbookError
from benchbook.content.project import Project, find_project
from benchbook.content.script import Script
from benchbook.machines.gpus import sheets
from benchbook.recording import command as recording
from benchbook.recording.estimate import SHARE, START_SECONDS, expected_seconds, work_problems
from benchbook.recording.plan import make_plan
from running import add_script, parsed, small_project

H100 = next(sheet for sheet in sheets() if sheet.model == "H100")
VALUES = {"layers": 2, "width": 3.0, "precision": "fp32", "sizes": [1, 2, 3], "fast": True}


@pytest.mark.parametrize(
    ("expression", "value"),
    [
        (7, 7),
        ("2 * layers + width ** 2 / 3 - -1", 8),
        ("10 if precision == 'fp32' and fast else 20", 10),
        ("10 if precision in ['bf16', 'fp16'] or not fast else 20", 20),
        ("{'fp32': 4, 'bf16': 2}[precision] * sum(sizes)", 24),
        ("max(sizes) + min(sizes[0], 9) + len(sizes)", 7),
    ],
)
def test_an_expression_comes_to_what_python_would_say(expression: str | float, value: float) -> None:
    assert evaluate(expression, VALUES) == value


@pytest.mark.parametrize(
    "expression",
    [
        "__import__('os').system('true')",
        "(lambda: 1)()",
        "[x for x in sizes]",
        "precision.upper()",
        "f'{layers}'",
        "open('/etc/passwd')",
        "precision * 9",
        "9 ** 9 ** 9 ** 9",
        "1 / 0",
        "float('nan')",
        "unknown",
        "sizes[9]",
        "2 *",
        "",
        "layers\n+ import",
        "(" * 500 + "1" + ")" * 500,
        "1" * 3000,
        "-" * 1900 + "1",
        'len("aaaaaaaaaa") ** len("aaaaaaaaaa") ** len("aaaaaaaaa")',
        "layers or 8",
        "2 * fast",
        "fast",
        "'5'",
        "-1e999",
        "1 if layers else 2",
        "1 < layers < 3",
        "max(precision, layers)",
        "(n := 5)",
    ],
)
def test_anything_but_arithmetic_has_no_value(expression: str) -> None:
    with pytest.raises(NotArithmeticError):
        evaluate(expression, VALUES)


@pytest.mark.parametrize("number", [float("inf"), float("nan"), 10**400])
def test_a_number_that_is_not_finite_is_no_work(number: float) -> None:
    with pytest.raises(NotArithmeticError):
        evaluate(number, VALUES)


@given(st.text(max_size=80))
def test_no_text_does_anything_else(text: str) -> None:
    try:
        names_in(text)
        evaluate(text, VALUES)
    except NotArithmeticError:
        pass


WORK = """
    needs = ["accelerator"]
    repeats = 2
    [tool.benchbook.metrics]
    doubled = { unit = "count" }
    [tool.benchbook.matrix]
    n = [1, 3]
    [tool.benchbook.work]
"""
BODY = "# %% parameters\nn = 1\n\n# %% work\ndoubled = 2 * n\n\n# %% checks\nassert doubled"


def working(work: str) -> Script:
    return parsed(BODY, WORK + "\n".join(f"    {line}" for line in work.splitlines()))


def seconds(work: str) -> list[float | None]:
    script = working(work)
    return [expected_seconds(script, variant, H100) for variant in script.variants(("accelerator", "cuda"))]


def test_a_run_takes_what_arithmetic_or_memory_needs_whichever_is_longer() -> None:
    # One second of each at the rates of the sheet, and then three.
    assert seconds('fp32 = "67e12 * n"\nbytes = 1e9') == pytest.approx(
        [START_SECONDS + 1 / SHARE["fp32"], START_SECONDS + 3 / SHARE["fp32"]]
    )
    assert seconds('fp32 = 1e9\nbytes = "3350e9 * n"') == pytest.approx(
        [START_SECONDS + 1 / SHARE["bytes"], START_SECONDS + 3 / SHARE["bytes"]]
    )


def test_each_number_format_has_its_own_rate_and_sparsity_none() -> None:
    assert seconds("bf16 = 989.5e12")[0] == seconds("tf32 = 494.5e12")[0] == seconds("fp8 = 1979e12")[0]


def test_a_format_that_a_device_has_not_is_computed_in_a_wider_one() -> None:
    volta = next(sheet for sheet in sheets() if sheet.model == "V100")
    script = working("fp8 = 130e12\ntf32 = 16.4e12")
    found = expected_seconds(script, script.variants(("cuda",))[0], volta)
    assert found == pytest.approx(START_SECONDS + 1 / SHARE["bf16"] + 1 / SHARE["fp32"])


def test_what_the_host_draws_and_whatever_else_comes_on_top() -> None:
    assert seconds('host_values = "1.2e8 * n"\nseconds = 4') == pytest.approx(
        [START_SECONDS + 5, START_SECONDS + 7]
    )


def test_a_script_that_declares_no_work_has_no_estimate() -> None:
    assert seconds("") == [None, None]


def test_an_expression_without_a_value_names_its_line() -> None:
    with pytest.raises(BenchbookError, match=r"small\.py:1\d: the work `fp32` of variant n=1 has no value"):
        seconds('fp32 = "1 / (n - 1)"')


@pytest.mark.parametrize(
    ("work", "said"),
    [
        ('fp32 = "6 * width"', "names `width`, which is not a parameter"),
        ("fp33 = 1", "unknown key `fp33`"),
        ("fp32 = [1]", "which is not arithmetic"),
        ('fp32 = "2 +"', "which is not arithmetic"),
    ],
)
def test_work_that_cannot_be_meant_is_refused_with_its_line(work: str, said: str) -> None:
    with pytest.raises(BenchbookError) as caught:
        working(work)
    (problem,) = caught.value.problems
    assert said in problem.what
    assert problem.line > 8


@pytest.mark.parametrize(
    "work", ['fp32 = "1 / (n - 1)"', 'fp32 = "1 - n"', "seconds = inf", 'bytes = "n // 2"']
)
def test_the_check_computes_the_work_of_every_variant(tmp_path: Path, work: str) -> None:
    project = small_project(tmp_path)
    add_script(tmp_path, BODY, WORK + f"    {work}")
    (problem,) = (one for one in check_project(project).problems if "the work" in one.what)
    assert (problem.path, problem.line) == ("snippets/guide/small.py", 14)


def test_work_for_more_variants_than_a_check_computes_is_a_problem(monkeypatch: pytest.MonkeyPatch) -> None:
    kinds = "[tool.benchbook.on.cuda]\nn = 1\n[tool.benchbook.on.rocm]\nn = 2"
    points = "[tool.benchbook.matrix]\nn = [" + ", ".join(map(str, range(700))) + "]"
    script = parsed(BODY, f'needs = ["accelerator"]\n{kinds}\n{points}\n[tool.benchbook.work]\nfp32 = "n"')
    monkeypatch.setattr("benchbook.recording.estimate.work_of", None)
    (problem,) = work_problems(script)
    assert "computed for 2100 variants on all kinds of machine, and 2000 are the most" in problem.what
    assert problem.line == 14


def test_variants_of_kinds_that_only_a_check_asks_for_are_not_kept() -> None:
    script = working('fp32 = "n"')
    assert list(work_problems(script)) == []
    assert script._variants == {}


def test_a_wrong_estimate_costs_no_recording(tmp_path: Path) -> None:
    project = small_project(tmp_path)
    add_script(tmp_path, BODY, WORK + '    fp32 = "1 / (n - 1)"')
    described = recording.planned_machine(project, "nvidia-h100-80gb")
    assert described is not None
    (task,) = make_plan(project, [], described, lambda _: None).tasks
    assert (task.run_seconds["n=1"], task.seconds) == (None, None)
    assert task.run_seconds["n=3"] is not None


# What is recorded first


@pytest.fixture
def project(tmp_path: Path) -> Project:
    return small_project(tmp_path)


def planned(project: Project, capsys: pytest.CaptureFixture[str], machine: str = "nvidia-h100-80gb") -> Any:
    recording.record_command(project, [], machine=machine, plan=True, plan_json=True)
    return json.loads(capsys.readouterr().out)


def test_what_is_worth_most_comes_first_and_each_group_has_its_minutes(
    project: Project, capsys: pytest.CaptureFixture[str]
) -> None:
    for name, worth in (("early", 2), ("middle", 5), ("late", 5), ("least", 0)):
        work = f'needs = ["accelerator"]\nworth = {worth}\n[tool.benchbook.work]\nseconds = 57.9'
        add_script(project.root, "pass", work, f"guide/{name}.py")
    table = planned(project, capsys)
    assert [script["script"] for script in table["scripts"]] == [
        "guide/late.py",
        "guide/middle.py",
        "guide/early.py",
        "guide/least.py",
    ]
    # Two runs of 60 seconds each, and 4 for the server.
    minutes = pytest.approx(2 + 4 / 60, abs=0.01)
    assert [(group["worth"], group["runs"]) for group in table["groups"]] == [(5, 4), (2, 2), (0, 2)]
    assert table["groups"][1]["expected_minutes"] == minutes
    assert table["expected_minutes"] == pytest.approx(4 * (2 + 4 / 60), abs=0.02)
    assert all(script["estimated"] for script in table["scripts"])


def test_a_plan_in_words_says_what_is_estimated(project: Project, capsys: pytest.CaptureFixture[str]) -> None:
    add_script(project.root, "pass", 'needs = ["accelerator"]\n[tool.benchbook.work]\nseconds = 57.9')
    recording.record_command(project, [], machine="nvidia-h100-80gb", plan=True)
    said = capsys.readouterr().out
    assert "≈ 2.0" in said
    assert "estimated from the operations and bytes" in said


def test_repeats_are_those_of_the_kind_of_machine() -> None:
    table = 'needs = ["cpu", "accelerator"]\nrepeats = 5\n[tool.benchbook.on.accelerator]\nrepeats = 3\n'
    table += "[tool.benchbook.on.nvidia-h100-80gb]\nrepeats = 2"
    script = parsed("pass", table)
    kinds = [("cpu", "cpu-2core"), ("accelerator", "cuda", "nvidia-t4"), ("accelerator", "nvidia-h100-80gb")]
    assert [script.variants(kind)[0].repeats for kind in kinds] == [5, 3, 2]


def test_a_metric_asks_for_its_own_repeats() -> None:
    def repeats(metrics: str) -> int:
        table = f'needs = ["cpu"]\n[tool.benchbook.metrics]\n{metrics}'
        return parsed("pass", table).variants(("cpu",))[0].repeats

    assert repeats('bytes = { unit = "B" }') == 2
    assert repeats('bytes = { unit = "B" }\ntime = { unit = "s" }') == 8
    assert repeats('bytes = { unit = "B" }\ntime = { unit = "s", repeats = 4 }') == 4


# The scripts of this handbook


@pytest.mark.parametrize("machine", ["nvidia-h100-80gb", "nvidia-h200-141gb", "nvidia-a100-80gb"])
def test_every_script_for_an_accelerator_has_a_figure(machine: str) -> None:
    project = find_project(Path(__file__).parents[1])
    described = recording.planned_machine(project, machine)
    assert described is not None
    plan = make_plan(project, [], described, lambda _: None, which="all")
    assert plan.problems == ()
    assert [task.script.reference for task in plan.tasks if task.seconds is None] == []


def test_the_first_two_groups_fit_into_sixteen_minutes_of_an_h100() -> None:
    project = find_project(Path(__file__).parents[1])
    described = recording.planned_machine(project, "nvidia-h100-80gb")
    assert described is not None
    plan = make_plan(project, [], described, lambda _: None, which="all")
    first, second = list(plan.groups)[:2]
    seconds = [task.seconds or 0.0 for _, tasks in (first, second) for task in tasks]
    assert 60 < sum(seconds) <= 16 * 60
