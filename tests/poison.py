"""The small handbook with markup in every text of a record or description that validation lets through."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

from benchbook.content.project import Project
from handbooks import FIXTURE

ROOT = Path(__file__).resolve().parents[1]
# What would show as an element, an attribute, a link or a script wherever a text is taken for markup.
POISON = (
    "'\"><poison-element onpoison=1></code></pre></script><script>poisoned=1</script>"
    "<img src=x onerror=poisoned=1> [x](javascript:poisoned=1) ![y](x) **b** `c` {{ 7*7 }} \u202e </textarea>"
)
# What is not free text, and stays: validation knows every value these may have.
NAMES = {
    *(
        "schema",
        "script",
        "machine",
        "licence",
        "name",
        "kind",
        "started",
        "finished",
        "commit",
        "campaign",
        "sha256",
    ),
    *(
        "outcome",
        "code",
        "date",
        "url",
        "published",
        "parameters",
        "meters",
        "vendor",
        "measured",
        "variants",
    ),
}


def poisoned(value: Any, key: str = "") -> Any:
    """`value` with every free text in it replaced, and one where a text may be and is not."""
    if isinstance(value, dict):
        return {name: poisoned(item, name) for name, item in value.items()}
    if isinstance(value, list) and key != "flags":
        return [poisoned(item, key) for item in value]
    if key in NAMES or not isinstance(value, str):
        return value
    return value + POISON


def poison_handbook(folder: Path) -> Project:
    """A copy of the small handbook in `folder`, its records poisoned."""
    shutil.copytree(FIXTURE, folder, dirs_exist_ok=True)
    config = folder / "mkdocs.yml"
    config.write_text(
        config.read_text("utf-8").replace("../../../mkdocs.yml", (ROOT / "mkdocs.yml").as_posix()), "utf-8"
    )
    for path in folder.glob("snippets/records/**/*.json"):
        table = poisoned(json.loads(path.read_text("utf-8")))
        if "campaigns" in table:
            for campaign in table["campaigns"].values():
                campaign["packages"] = {"python": POISON, "torch": POISON, POISON: "1"}
                campaign["state"] |= {"driver": POISON}
        elif table["accelerator"] is not None:
            table["accelerator"] |= {"driver": POISON, "runtime": POISON}
        path.write_text(json.dumps(table, ensure_ascii=False), "utf-8")
    return Project(folder)
