"""What a reader can take away: each script, its notebook with the recorded outputs, and the raw records."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from benchbook.measurements import shown_variant
from benchbook.problems import BenchbookError
from benchbook.project import Project
from benchbook.records import load_record
from benchbook.script import Cell, Script, read_script

FOLDER = "downloads"


def script_path(script: str) -> str:
    """Where the copy of `script` ("guide/script.py") lies, from the root of the site."""
    return f"{FOLDER}/{script}"


def notebook_path(script: str) -> str:
    """Where the notebook of `script` lies, from the root of the site."""
    return f"{FOLDER}/{Path(script).with_suffix('.ipynb').as_posix()}"


def record_path(machine: str, script: str) -> str:
    """Where the record of `script` on `machine` lies, from the root of the site."""
    return f"{FOLDER}/records/{machine}/{Path(script).with_suffix('.json').as_posix()}"


def notebook(script: Script, output: dict[str, str], where: str = "") -> str:
    """The notebook of `script`: a code cell for each of its cells, with the outputs a machine recorded.

    Parameters:
        script: Whose cells.
        output: The recorded text by cell name; a cell without any has none.
        where: What to say of the machine that recorded it, one sentence; empty if none did.
    """
    ranks = script.metadata.ranks
    about = [f"# {Path(script.reference).name}", script.docstring, where]
    if ranks > 1:
        name = Path(script.reference).name
        about.append(f"It runs in {ranks} processes together: `torchrun --nproc-per-node {ranks} {name}`.")
    # A hyphen keeps this id apart from those of the cells, whose names have none.
    text = "\n\n".join(filter(None, about))
    cells: list[dict[str, Any]] = [
        {"cell_type": "markdown", "id": "about-script", "metadata": {}, "source": text}
    ]
    cells += [_code_cell(cell, output.get(cell.name, "")) for cell in script.cells]
    metadata = {
        "kernelspec": {"display_name": "Python 3", "language": "python", "name": "python3"},
        "language_info": {"name": "python"},
        "dependencies": list(script.metadata.dependencies),
    }
    made = {"cells": cells, "metadata": metadata, "nbformat": 4, "nbformat_minor": 5}
    return json.dumps(made, indent=1, sort_keys=True, ensure_ascii=False) + "\n"


def _code_cell(cell: Cell, output: str) -> dict[str, Any]:
    outputs = [{"output_type": "stream", "name": "stdout", "text": output}] if output else []
    return {
        "cell_type": "code",
        "id": cell.name,
        "metadata": {},
        "source": cell.source,
        "outputs": outputs,
        "execution_count": None,
    }


class Downloads:
    """Writes the downloads of a project into a site, anew only what has changed since it last did."""

    def __init__(self) -> None:
        self._notebooks: dict[Path, tuple[tuple[int, ...], str]] = {}

    def write(self, project: Project, site: Path) -> None:
        """Put every script, notebook and record of `project` below `site`."""
        for record in sorted(project.records.glob("*/*/*.json")):
            machine, guide = record.parent.parent.name, record.parent.name
            _copy(record, site / FOLDER / "records" / machine / guide / record.name)
        for path in project.script_paths():
            reference = f"{path.parent.name}/{path.name}"
            _copy(path, site / script_path(reference))
            target = site / notebook_path(reference)
            text = self._notebook(project, path, reference)
            if text is not None:
                target.write_text(text, "utf-8")

    def _notebook(self, project: Project, path: Path, reference: str) -> str | None:
        guide = reference.partition("/")[0]
        record = project.record_path(project.config.reference_for(guide), reference)
        if not record.is_file():
            record = next(
                (p for m in project.machines if (p := project.record_path(m, reference)).is_file()), record
            )
        stamps = tuple(file.stat().st_mtime_ns for file in (path, record) if file.is_file())
        kept = self._notebooks.get(path)
        if kept is None or kept[0] != stamps:
            text = _build_notebook(project, path, record)
            if text is None:
                return None
            kept = self._notebooks[path] = (stamps, text)
        return kept[1]


def _build_notebook(project: Project, path: Path, record: Path) -> str | None:
    try:
        script = read_script(path, project.root)
        found = load_record(record, project.relative(record))
    except BenchbookError:
        return None  # reported with the pages and by `benchbook check`
    variant = shown_variant(script)
    result = found.variants.get(variant.name) if found else None
    if found is None or result is None:
        return notebook(script, {})
    started = found.campaigns[result.campaign].started[:10]
    where = f"The outputs below were recorded on {found.machine} on {started}."
    changed = {k: v for k, v in result.parameters.items() if k in script.shown and v != script.shown[k]}
    if changed:
        where += f" There it ran with `{', '.join(f'{k} = {v!r}' for k, v in changed.items())}`."
    return notebook(script, result.output, where)


def _copy(source: Path, target: Path) -> None:
    target.parent.mkdir(parents=True, exist_ok=True)
    target.write_bytes(source.read_bytes())
