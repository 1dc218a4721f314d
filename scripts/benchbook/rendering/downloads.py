"""What a reader can take away: each script, its notebook with the recorded outputs, and the raw records."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from benchbook.content.parameters import differs, parameters_text
from benchbook.content.problems import BenchbookError
from benchbook.content.records import Campaign, Record
from benchbook.content.references import UnresolvedError
from benchbook.content.script import Script
from benchbook.content.traces import file_name
from benchbook.query.library import Library
from benchbook.query.measurements import shown_variant
from benchbook.rendering.kept_pages import Content

FOLDER = "downloads"
# The branch that holds the notebooks of the published site, for Colab reads from repositories alone.
BRANCH = "notebooks"
_GITHUB = re.compile(r"https://github\.com/(?P<name>[A-Za-z0-9._-]+/[A-Za-z0-9._-]+?)(\.git)?/?\Z")


def script_path(script: str) -> str:
    """Where the copy of `script` ("guide/script.py") lies, from the root of the site."""
    return f"{FOLDER}/{script}"


def notebook_path(script: str) -> str:
    """Where the notebook of `script` lies, from the root of the site."""
    return f"{FOLDER}/{Path(script).with_suffix('.ipynb').as_posix()}"


def colab_address(repository: str, script: Script) -> str | None:
    """Where Colab opens the notebook of `script`; None where it could not run it.

    Parameters:
        repository: The address of the repository, as mkdocs.yml has it.
        script: One of several processes, or with other files beside it, does not run in a notebook alone.
    """
    match = _GITHUB.match(repository)
    if match is None or script.metadata.ranks > 1 or script.metadata.inputs:
        return None
    path = notebook_path(script.reference).removeprefix(f"{FOLDER}/")
    return f"https://colab.research.google.com/github/{match['name']}/blob/{BRANCH}/{path}"


def record_path(machine: str, script: str) -> str:
    """Where the record of `script` on `machine` lies, from the root of the site."""
    return f"{FOLDER}/records/{machine}/{Path(script).with_suffix('.json').as_posix()}"


def trace_path(machine: str, script: str, name: str, digest: str) -> str:
    """Where the trace `name` of `script` on `machine` lies, from the root of the site."""
    return f"{record_path(machine, script).removesuffix('.json')}/{file_name(name, digest)}"


def prediction_path(machine: str, script: str) -> str:
    """Where the predictions of `script` on `machine` lie, from the root of the site."""
    return f"{FOLDER}/predictions/{machine}/{Path(script).with_suffix('.json').as_posix()}"


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
    # A hyphen keeps this id, and the next, apart from those of the cells, whose names have none.
    text = "\n\n".join(filter(None, about))
    cells: list[dict[str, Any]] = [
        {"cell_type": "markdown", "id": "about-script", "metadata": {}, "source": text}
    ]
    if script.metadata.dependencies:
        cells.append(_installing_cell(script.metadata.dependencies))
    cells += [_code_cell(cell.name, cell.source, output.get(cell.name, "")) for cell in script.cells]
    metadata = {
        "kernelspec": {"display_name": "Python 3", "language": "python", "name": "python3"},
        "language_info": {"name": "python"},
        "dependencies": list(script.metadata.dependencies),
    }
    made = {"cells": cells, "metadata": metadata, "nbformat": 4, "nbformat_minor": 5}
    return json.dumps(made, indent=1, sort_keys=True, ensure_ascii=False) + "\n"


def _installing_cell(dependencies: Sequence[str]) -> dict[str, Any]:
    """What puts the packages of a script beside the kernel that runs its notebook, here or in Colab."""
    source = "%pip install --quiet " + " ".join(f'"{one}"' for one in dependencies)
    return _code_cell("install-packages", source, "")


def _code_cell(name: str, source: str, output: str) -> dict[str, Any]:
    outputs = [{"output_type": "stream", "name": "stdout", "text": output}] if output else []
    return {
        "cell_type": "code",
        "id": name,
        "metadata": {},
        "source": source,
        "outputs": outputs,
        "execution_count": None,
    }


class Downloads:
    """The downloads of a project; its notebooks are made anew only where something has changed."""

    def __init__(self) -> None:
        self._notebooks: dict[str, tuple[Script, Record | None, str]] = {}

    def files(self, library: Library) -> dict[str, Content]:
        """Every script, notebook, record, trace and prediction of a project, by its path below `FOLDER`."""
        project = library.project
        found = [*_recorded(library), *sorted(project.predictions.glob("*/*/*.json"))]
        files: dict[str, Content] = {
            path.relative_to(project.snippets).as_posix(): path
            for path in found
            if path.is_file() and not path.is_symlink()
        }
        for reference, path in project.scripts().items():
            files[reference] = path
            try:
                text = self._notebook(library, reference)
            except BenchbookError:
                continue  # reported with the pages and by `benchbook check`
            files[notebook_path(reference).removeprefix(f"{FOLDER}/")] = text
        return files

    def _notebook(self, library: Library, reference: str) -> str:
        script = library.script(reference)
        try:
            machine = library.machine_for(script.guide, reference)
            record = library.record(machine.name, reference)
        except UnresolvedError:
            record = None
        kept = self._notebooks.get(reference)
        if kept is None or kept[0] is not script or kept[1] is not record:
            kept = self._notebooks[reference] = (script, record, _recorded_notebook(script, record))
        return kept[2]


def _recorded(library: Library) -> Iterator[Path]:
    """The records of every machine, and the traces that they name: nothing that only lies beside them."""
    project = library.project
    for machine in project.machines:
        folder = project.records / machine
        for path in sorted(folder.glob("*/*.json")):
            yield path
            try:
                record = library.record(machine, path.relative_to(folder).with_suffix(".py").as_posix())
            except BenchbookError:
                continue  # reported with the pages and by `benchbook check`
            variants = record.variants.values() if record else ()
            named = {
                file_name(name, one.sha256) for variant in variants for name, one in variant.traces.items()
            }
            yield from (one for one in sorted(path.with_suffix("").glob("*")) if one.name in named)


def _recorded_notebook(script: Script, record: Record | None) -> str:
    result = record.variants.get(shown_variant(script).name) if record else None
    campaign = record.campaigns[result.campaign] if record and result else None
    if record is None or result is None or not isinstance(campaign, Campaign):
        return notebook(script, {})
    where = f"The outputs below were recorded on {record.machine} on {campaign.started[:10]}."
    shown = script.shown
    changed = {k: v for k, v in result.parameters.items() if k in shown and differs(v, shown[k])}
    if changed:
        where += f" There it ran with {_as_code(parameters_text(changed))}."
    return notebook(script, result.output, where)


def _as_code(text: str) -> str:
    """A line as code in Markdown, which a longer run of backticks ends than any that stands in it."""
    fence = "`" * max(map(len, re.findall("`*", text)), default=0) + "`"
    # Of blanks around the text Markdown takes one each, and none stand there by themselves.
    return f"{fence} {text} {fence}" if len(fence) > 1 else f"{fence}{text}{fence}"
