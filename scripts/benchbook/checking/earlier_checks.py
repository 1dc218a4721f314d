"""Hold what scripts say of their earlier checks to their history: nothing but the checks was otherwise."""

from __future__ import annotations

import symtable
from collections.abc import Iterator, Mapping

from benchbook.checking.origins import script_in
from benchbook.content.problems import BenchbookError, Problem
from benchbook.content.project import Project
from benchbook.content.records import load_record
from benchbook.content.revisions import git_answer, has_whole_history
from benchbook.content.script import Script

KEY = "earlier_checks"


def earlier_checks_problems(project: Project, scripts: Mapping[str, Script]) -> Iterator[Problem]:
    """Digests of `earlier_checks` that no record needs, or that were of other code than the checks alone.

    Where the history is not whole, or there is none, a digest that a record holds is not looked for.

    Parameters:
        project: The checkout.
        scripts: Those here, by their reference.
    """
    for script in scripts.values():
        if not script.metadata.earlier_checks:
            continue
        if ours := _results_set(script):
            what = f"its `checks` set {ours}, which records hold"
            yield Problem(script.path, script.cells[-1].line, what, f"only ask in it, or leave `{KEY}` away")
        recorded = _recorded_codes(project, script)
        past = _past(project, script) if has_whole_history(project.root) else None
        for digest in script.metadata.earlier_checks:
            told = None if digest in recorded else "no record holds it"
            if told is None and past is not None:
                told = _why_not(past.get(digest), script)
            if told is not None:
                named = digest[: len("sha256:") + 12]
                what = f"the code {named} of `{KEY}` is not this with other checks: {told}"
                fix = "take it away, and record again what is stale then"
                yield Problem(script.path, script.metadata.line_of(KEY), what, fix)


def codes_of_other_checks(project: Project, script: Script, machine: str) -> dict[str, str]:
    """The code of stale variants, by their name, where it differs from the script's by its checks alone.

    Parameters:
        project: The checkout.
        script: As it stands.
        machine: Where it was recorded.
    """
    record = load_record(project.record_path(machine, script.reference))
    measured = {name: one.code for name, one in record.variants.items()} if record is not None else {}
    past = _past(project, script) if measured and has_whole_history(project.root) else {}
    alike = {code for code, one in past.items() if _why_not(one, script) is None} - script.codes
    return {name: code for name, code in measured.items() if code is not None and code in alike}


def _why_not(past: Script | None, script: Script) -> str | None:
    """Why what a past script measured is not what `script` measures; None where only the checks differ."""
    if past is None:
        return "no commit here has it"
    if past.measuring_lines != script.measuring_lines:
        return "it differs by more than the cell `checks`"
    theirs = _results_set(past)
    return f"its checks set {theirs}, which records hold" if theirs else None


def _recorded_codes(project: Project, script: Script) -> set[str | None]:
    """The digests of code that records of a script hold, on whatever machine."""
    found: set[str | None] = set()
    for machine in project.machines:
        try:
            record = load_record(project.record_path(machine, script.reference))
        except BenchbookError:
            continue  # told elsewhere
        found |= {variant.code for variant in record.variants.values()} if record is not None else set()
    return found


def _past(project: Project, script: Script) -> dict[str, Script]:
    """The script as it was in each commit that changed it, by the digest of its code."""
    asked = ("--format=%H", "--full-history", "--", script.path)
    commits = (git_answer(project.root, "log", *asked) or b"").decode().split()
    found: dict[str, Script] = {}
    for commit in commits:
        try:
            past = script_in(project.root, f"{commit}:./{script.path}", script.reference)
        except BenchbookError:
            continue  # no script as scripts are now
        if past is not None:
            found.setdefault(past.code_digest, past)
    return found


def _results_set(script: Script) -> str:
    """The metrics and traces of a script to which its `checks` cell gives a value, as a list in words."""
    top = symtable.symtable(script.cells[-1].source, script.path, "exec")
    results = {*script.metadata.metrics, *script.metadata.traces}
    return ", ".join(sorted(results.intersection(_globals_set(top))))


def _globals_set(table: symtable.SymbolTable) -> Iterator[str]:
    """The global names that a piece of Python, or a function in it, binds."""
    for symbol in table.get_symbols():
        binds = symbol.is_assigned() or symbol.is_imported()
        if binds and (table.get_type() == "module" or symbol.is_declared_global()):
            yield symbol.get_name()
    for inner in table.get_children():
        yield from _globals_set(inner)
