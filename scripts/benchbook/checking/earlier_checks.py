"""Hold what scripts say of their earlier checks to their history: nothing but the checks was otherwise."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping

from benchbook.checking.origins import script_in
from benchbook.content.problems import BenchbookError, Problem
from benchbook.content.project import Project
from benchbook.content.records import load_record
from benchbook.content.revisions import git_answer, has_whole_history
from benchbook.content.script import Script

KEY = "earlier_checks"
# What an assertion may call, of Python and PyTorch: each looks at a result and leaves it as it is.
_LOOKS = frozenset(
    {
        *("abs", "all", "any", "bool", "dict", "enumerate", "float", "int", "isinstance", "len", "list"),
        *("max", "min", "range", "round", "set", "sorted", "str", "sum", "tuple", "type", "zip"),
        *("endswith", "issubset", "items", "keys", "split", "splitlines", "startswith", "strip", "values"),
        *("allclose", "equal", "isclose", "isfinite", "isinf", "isnan", "item", "numel", "tolist"),
    }
)


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
    if _beside_assertions(past) != _beside_assertions(script):
        return "its checks differ by more than what they assert"
    return None


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


def _beside_assertions(script: Script) -> str:
    """What the `checks` of a script do but assert, which may change what is recorded after them."""
    return ast.dump(_WithoutAssertions().visit(ast.parse(script.cells[-1].source)))


class _WithoutAssertions(ast.NodeTransformer):
    """Leaves out assertions that only look, and conditions of nothing else."""

    def visit_Assert(self, node: ast.Assert) -> ast.Assert | None:
        return None if _only_looks(node) else node

    def visit_If(self, node: ast.If) -> ast.If | None:
        self.generic_visit(node)
        return node if node.body or node.orelse or not _only_looks(node.test) else None


def _only_looks(node: ast.AST) -> bool:
    """Whether an assertion or condition sets nothing and calls only what leaves alone what it is given."""
    return all(_leaves_alone(inner) for inner in ast.walk(node))


def _leaves_alone(node: ast.AST) -> bool:
    match node:
        case ast.NamedExpr():
            return False
        # What a comprehension goes through may be an item of what is there already.
        case ast.Subscript(ctx=context) | ast.Attribute(ctx=context):
            return isinstance(context, ast.Load)
        case ast.Call(func=ast.Name(id=name) | ast.Attribute(attr=name), keywords=keywords):
            return name in _LOOKS and all(_looks_too(given.value) for given in keywords)
        case ast.Call():
            return False
    return True


def _looks_too(given: ast.expr) -> bool:
    """Whether what a keyword gives is a constant, or a function, which is called too, that only looks."""
    match given:
        case ast.Name(id=name):
            return name in _LOOKS
        case ast.Attribute(attr=name):
            return name in _LOOKS | {"get"}  # as in `max(shares, key=shares.get)`
    return isinstance(given, ast.Constant)
