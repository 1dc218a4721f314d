"""What the machines of bundles are called, and that no two are called the same."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from benchbook.checking.bundles import import_bundles
from benchbook.content.project import Project
from builders import packed, write
from bundled import bundle_of, later, on_a_gpu, refusal, renamed


@pytest.mark.parametrize(
    ("device", "said"),
    [
        ({"name": "Graphics", "compute_capability": "H100"}, "H100 (Ada)', and does not describe a H100"),
        ({"name": "ZZ MIG maintainers"}, "ZZ MIG maintainers (Ada)', and is not the maintainers'"),
        ({"name": "Graphics", "compute_capability": "x" * 400}, "title: String should have at most"),
    ],
)
def test_what_a_machine_is_called_on_its_import_is_what_check_lets_pass(
    project: Project, tmp_path: Path, device: dict[str, Any], said: str
) -> None:
    bundle = on_a_gpu(bundle_of())
    bundle["machine"] |= {"kind": "xpu"}
    bundle["machine"]["accelerator"] |= {"vendor": None, "compute_capability": None} | device
    renamed(bundle, "gpu-of-ada--ada", "Ada")
    assert said in refusal(project, write(tmp_path / "bundle.json", packed(bundle)))


@pytest.mark.parametrize(("capability", "is_one"), [("gfx90a", True), ("gfx<b>942", False), ("9.0", False)])
def test_a_compute_capability_of_amd_s_is_written_as_amd_writes_it(
    project: Project, tmp_path: Path, capability: str, is_one: bool
) -> None:
    bundle = on_a_gpu(bundle_of())
    bundle["machine"] |= {"kind": "rocm"}
    bundle["machine"]["accelerator"] |= {"name": "AMD Radeon Graphics", "vendor": "AMD"}
    bundle["machine"]["accelerator"] |= {"compute_capability": capability}
    renamed(bundle, "gpu-of-ada--ada", "Ada")
    path = write(tmp_path / "bundle.json", packed(bundle))
    if is_one:
        assert import_bundles(project, [path]).written
    else:
        assert f"has the compute capability {capability}, as no GPU has" in refusal(project, path)


def test_of_two_machines_of_one_owner_the_second_has_its_name_behind_its_title(
    project: Project, tmp_path: Path
) -> None:
    import_bundles(project, [write(tmp_path / "bundle.json", packed(bundle_of()))])
    other = renamed(later(bundle_of()), "cpu-attic--ada", "Ada")
    import_bundles(project, [write(tmp_path / "other.json", packed(other))])
    table = json.loads((project.records / "cpu-attic--ada/machine.json").read_text("utf-8"))
    assert table["title"] == "2-core CPU, 24 GB (Ada) (cpu-attic--ada)"
    assert table["short"] == "CPU 2-core (Ada) (cpu-attic--ada)"


def test_two_machines_of_one_owner_that_come_in_together_are_told_apart(
    project: Project, tmp_path: Path
) -> None:
    other = renamed(later(bundle_of()), "cpu-attic--ada", "Ada")
    paths = [write(tmp_path / f"{n}.json", packed(one)) for n, one in enumerate((bundle_of(), other))]
    import_bundles(project, paths)
    titles = {json.loads(one.read_text("utf-8"))["title"] for one in project.records.glob("*/machine.json")}
    assert titles == {"2-core CPU, 24 GB (Ada)", "2-core CPU, 24 GB (Ada) (cpu-attic--ada)"}


@pytest.mark.parametrize(
    "text", ["", " ", "a\nb", "a\0b", "\x1b[31mred", "\u202etxet", "a\u2028b", "<b>x</b>", "a\u200bb"]
)
@pytest.mark.parametrize("key", ["title", "short"])
def test_a_title_is_one_line_that_is_seen_and_is_no_markup(
    project: Project, tmp_path: Path, key: str, text: str
) -> None:
    bundle = bundle_of()
    bundle["machine"][key] = text
    said = refusal(project, write(tmp_path / "bundle.json", packed(bundle)))
    assert f"{key}: it holds what is not seen, such as a line break, or markup, or is blank" in said


def test_a_machine_of_quoted_figures_is_not_called_as_another_model(project: Project, tmp_path: Path) -> None:
    bundle = renamed(bundle_of(), "cpu-old--published", None)
    bundle["machine"] |= {"published": True, "title": "NVIDIA H200, 141 GB", "owner": "Maintainers"}
    said = refusal(project, write(tmp_path / "bundle.json", packed(bundle)))
    assert "is called 'NVIDIA H200, 141 GB', and does not describe a H200" in said
    assert "is quoted, and says that the maintainers measured it" in said
