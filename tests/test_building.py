"""The benchmark of building: pasted pages hold what the replayed ones show."""

from __future__ import annotations

import runpy
from pathlib import Path
from typing import Any

import pytest

from benchbook.content.fence_names import FENCES
from benchbook.content.project import Project
from benchbook.languages.language import load_language
from benchbook.query.library import Library
from handbooks import FIXTURE

ROOT = Path(__file__).parents[1]
SCRIPT = ROOT / "scripts" / "benchmarks" / "building.py"


@pytest.fixture(scope="module")
def building() -> dict[str, Any]:
    return runpy.run_path(str(SCRIPT))


def test_a_pasted_page_holds_outputs_and_no_fence(building: dict[str, Any]) -> None:
    project = Project(FIXTURE)
    page = project.docs / "ja" / "measured.md"
    text = building["paste"](
        page.read_text("utf-8"), page, Library(project), load_language(project.docs, "ja")
    )
    assert "#!value" not in text
    assert [name for name in FENCES if f"```{name}" in text] == []
    assert "    ```python\n    loss = [" in text
    assert "<b>method=plain,batch_size=1</b> on machine 1 & more" in text
    assert "| checkpointing | 4 | 4\u00a0GiB | 404\u00a0ms |" in text
    assert "7.2\u00a0×\u00a010⁻⁸" in text


def test_every_page_of_the_handbook_can_be_pasted(building: dict[str, Any]) -> None:
    project = Project(ROOT)
    library = Library(project)
    for page in (project.docs / "en").glob("*.md"):
        text = building["paste"](page.read_text("utf-8"), page, library, load_language(project.docs, "en"))
        assert [name for name in FENCES if f"```{name}" in text] == [], page


def test_the_copies_are_built_by_the_site_s_own_configuration(building: dict[str, Any]) -> None:
    replayed = building["configuration"](["guide"], 2, pasted=False)
    pasted = building["configuration"](["guide"], 2, pasted=True)
    assert "  - guide.md\n  - guide_1.md\n" in replayed
    assert pasted == replayed.replace("records: true", "records: false")
