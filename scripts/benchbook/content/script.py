"""Read a script: its inline metadata, its parameters, its cells, its variants and the digest of its code."""

from __future__ import annotations

import ast
import hashlib
import itertools
import re
import warnings
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from pathlib import Path
from typing import Any

from benchbook.content.code_lines import code_lines
from benchbook.content.formats import HIDDEN, LONE_SURROGATE, LONGEST_REFERENCE
from benchbook.content.metadata import (
    EXACT_REPEATS,
    ParameterValue,
    ScriptMetadata,
    read_metadata,
)
from benchbook.content.parameters import axis_text, differs, override_problems, shown_parameters
from benchbook.content.problems import BenchbookError, Problem
from benchbook.content.regions import UnevenRegionError, regions_of
from benchbook.content.safe_html import holds_markup
from benchbook.content.units import UNITS

MARKER = re.compile(r"^# %%(?:[ \t]+(?P<name>.*?))?[ \t]*$")
CELL_NAME = re.compile(r"[a-z][a-z0-9_]{0,79}\Z")
REFERENCE = re.compile(r"[a-z][a-z0-9_]*/[a-z][a-z0-9_]*\.py\Z")

# Ten times the longest of ours: what Python parses takes some thousand bytes for each of these.
LONGEST = 200_000

# Cells with a role of their own, which no page shows unless it asks for them by name.
PARAMETERS, CHECKS = "parameters", "checks"

# Several processes of one machine get one thread each, as under torchrun, unless the script declares more.
RANK_ENVIRONMENT = {"OMP_NUM_THREADS": "1"}

# What Colab, where readers open a notebook, makes a title, text or a field of: `# @title`, in a string too.
_FORM = re.compile(r"#[^\S\n]*@")

# What Markdown makes a link, a drawing or a formula of.
_MORE_THAN_WORDS = re.compile(r"\]\(|\]:|://|www\.|mailto:|```|~~~|[$\\]", re.IGNORECASE)

# A hundred times our longest. A `finally` in a `finally` doubles it, each `return` in its `try` adds to it.
MOST_COMPILED = 500_000
_BLOCKS = ast.stmt | ast.excepthandler | ast.match_case
# Ten times our deepest: Python reads some thousand levels, and fewer, the deeper the one who asks stands.
DEEPEST_NESTING = 200
# A hundred times our most. Compiling tells each scope all names around it.
MOST_SEEN = 1_000_000
_FUNCTIONS = ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef | ast.Lambda
_SCOPES = _FUNCTIONS | ast.ListComp | ast.SetComp | ast.DictComp | ast.GeneratorExp
# What highlights the code of a cell looks at much of it anew, from each brace of a string, each blank of a
# line and each zero behind a `%`; the search looks at a word of katakana from each of its letters. So a cell
# has three times as many characters as our longest at most, and nowhere so many of these in a row.
LONGEST_CELL = 20_000
ENDLESS_WORD = re.compile(r"\w{500}")
_RUN = re.compile(rf"(?P<blanks>[^\S\n]{{100}})|(?P<zeros>0{{100}})|(?P<letters>{ENDLESS_WORD.pattern})")
# No digest has these, and it takes minutes over thousands of them.
_BLANK = re.compile(r"\f|^[^\S\n]+$", re.MULTILINE)
# Where Python looks for the encoding of a file: https://peps.python.org/pep-0263/
_ENCODING = re.compile(r"[ \t\f]*#.*?coding[:=][ \t]*([-\w.]+)")


@dataclass(frozen=True)
class Cell:
    """A named part of a script.

    Parameters:
        name: What follows `# %%`.
        line: The line of its marker, counted from 1.
        start: The line on which `source` begins.
        source: Its code, byte for byte, without the blank lines around it.

    """

    name: str
    line: int
    start: int
    source: str


@dataclass(frozen=True)
class Variant:
    """A script with one set of its parameters, as it runs on one kind of machine.

    Parameters:
        name: `default`, or `axis=value,axis=value` in the declared order.
        axes: The point of the matrix: parameter values, and the number of ranks where that is swept.
        parameters: Every parameter with the value it runs with.
        overridden: Those that differ from what the script shows.
        ranks: How many processes run it together.
        environment: Variables set before the interpreter starts.
        meters: Meters that are read only on request.
        repeats: How many fresh processes measure it.
        timeout: Seconds after which a run is given up.

    """

    name: str
    axes: dict[str, ParameterValue]
    parameters: dict[str, ParameterValue]
    overridden: dict[str, ParameterValue]
    ranks: int
    environment: dict[str, str]
    meters: tuple[str, ...]
    repeats: int
    timeout: float

    def at(self, axis: str) -> ParameterValue:
        """Its value on `axis`: what its point sets, else what runs where a point sets nothing."""
        if axis in self.axes:
            return self.axes[axis]
        return self.ranks if axis == "ranks" else self.parameters.get(axis)


@dataclass(frozen=True)
class Script:
    """One runnable file of a guide.

    Parameters:
        path: Relative to the project, as errors name it.
        reference: "guide/script.py", as records and pages name it.
        source: The whole text.
        docstring: Its first statement.
        metadata: What its head declares.
        cells: In order.
        shown: The parameters as the `parameters` cell assigns them.

    """

    path: str
    reference: str
    source: str
    docstring: str
    metadata: ScriptMetadata
    cells: tuple[Cell, ...]
    shown: dict[str, ParameterValue]

    def cell(self, name: str) -> Cell:
        """The cell called `name`.

        Raises:
            KeyError: There is none.

        """
        for cell in self.cells:
            if cell.name == name:
                return cell
        raise KeyError(name)

    @cached_property
    def regions(self) -> dict[str, Cell]:
        """The regions of all cells by name, each as a cell of its own."""
        return {
            region.name: Cell(
                region.name, cell.start + region.first - 1, cell.start + region.first, region.source
            )
            for cell in self.cells
            for region in regions_of(cell.source)
        }

    @property
    def guide(self) -> str:
        """The guide it belongs to."""
        return self.reference.partition("/")[0]

    @property
    def stem(self) -> str:
        """Its file name without the ending."""
        return Path(self.reference).stem

    @cached_property
    def code_digest(self) -> str:
        """`sha256:...` of what it computes, without its layout, comments, docstring and parameters."""
        lines = [*self.measuring_lines, *code_lines(self.cells[-1].source)]
        return "sha256:" + hashlib.sha256("\n".join(lines).encode()).hexdigest()

    @cached_property
    def codes(self) -> frozenset[str]:
        """The digests of code whose records describe it: its own, and those of its earlier checks."""
        return frozenset({self.code_digest, *self.metadata.earlier_checks})

    @cached_property
    def measuring_lines(self) -> tuple[str, ...]:
        """What `code_digest` is made of, up to the head of its last cell, which checks what was measured."""
        lines = [
            f"metric {m.name} {m.unit}{' blocks' if m.blocks else ''}{' seeds' if m.seeds else ''}"
            for m in sorted(self.metadata.metrics.values(), key=lambda m: m.name)
        ]
        # A trace is recorded with its variant: one that is asked for later, the records do not have.
        lines += [f"trace {name}" for name in sorted(self.metadata.traces)]
        for cell in self.cells:
            lines.append(f"%% {cell.name}")
            if cell.name not in (PARAMETERS, CHECKS):
                lines.extend(code_lines(cell.source))
        return tuple(lines)

    @property
    def is_timed(self) -> bool:
        """Whether it yields what scatters from run to run, and is compared within one campaign only."""
        return any(UNITS[metric.unit].noisy for metric in self.metadata.metrics.values())

    @property
    def _repeats(self) -> int:
        """How many fresh processes measure a variant, where neither its point nor the machine's kind says."""
        metrics = self.metadata.metrics.values()
        return self.metadata.repeats or max((metric.processes for metric in metrics), default=EXACT_REPEATS)

    def runs_on(self, kinds: Iterable[str]) -> bool:
        """Whether it can run on a machine of these kinds (`machine_kinds`)."""
        return not set(self.metadata.needs).isdisjoint(kinds)

    def variants(self, kinds: Sequence[str], smallest: bool = False) -> tuple[Variant, ...]:
        """Its variants on a machine of these kinds, in the declared order.

        Parameters:
            kinds: From the widest to the narrowest, such as `("accelerator", "cuda", "nvidia-h200-141gb")`:
                a later one's overrides win.
            smallest: Whether to run with the smallest parameters, where points that fall together count once.

        """
        asked = tuple(kinds), smallest
        if asked not in self._variants:
            self._variants[asked] = self.make_variants(kinds, smallest)
        return self._variants[asked]

    @cached_property
    def _variants(self) -> dict[tuple[tuple[str, ...], bool], tuple[Variant, ...]]:
        """What was asked for before: pages ask for the same variants thousands of times."""
        return {}

    def make_variants(self, kinds: Sequence[str], smallest: bool = False) -> tuple[Variant, ...]:
        """The same, made anew and not kept: for kinds of machine that nothing else asks for."""
        base = dict(self.shown)
        repeats = self._repeats
        for kind in kinds:
            base.update(self.metadata.on.get(kind, {}))
            repeats = self.metadata.repeats_on.get(kind, repeats)
        found: dict[tuple[Any, ...], Variant] = {}
        for point in self.metadata.matrix or ({},):
            variant = self._variant(base, point, repeats, smallest)
            key = (
                variant.ranks,
                repr(sorted(variant.parameters.items())),
                repr(sorted(variant.environment.items())),
            )
            found.setdefault(key if smallest else (variant.name,), variant)
        return tuple(found.values())

    def _variant(
        self, base: Mapping[str, ParameterValue], point: Mapping[str, Any], repeats: int, smallest: bool
    ) -> Variant:
        metadata = self.metadata
        axes = {name: value for name, value in point.items() if name == "ranks" or name in self.shown}
        parameters = dict(base) | {name: value for name, value in axes.items() if name != "ranks"}
        if smallest:
            parameters |= metadata.smallest
        ranks = int(point.get("ranks", metadata.ranks))
        return Variant(
            name=",".join(f"{name}={axis_text(value)}" for name, value in axes.items()) or "default",
            axes=axes,
            parameters=parameters,
            overridden={k: v for k, v in parameters.items() if differs(v, self.shown[k])},
            ranks=ranks,
            environment=(RANK_ENVIRONMENT if ranks > 1 else {})
            | metadata.environment
            | dict(point.get("environment", {})),
            meters=tuple(point.get("meters", metadata.meters)),
            repeats=int(point.get("repeats", repeats)),
            timeout=metadata.timeout,
        )


def machine_kinds(kind: str, name: str) -> tuple[str, ...]:
    """What a machine is, from the widest to the narrowest, as `needs` and `on` name it."""
    return (kind, name) if kind == "cpu" else ("accelerator", kind, name)


def read_script(path: Path, root: Path) -> Script:
    """Parse `path`, a file of `snippets/<guide>/` below `root`.

    Raises:
        BenchbookError: It is not a well-formed script; carries every problem that could be told apart.

    """
    shown_path = path.relative_to(root).as_posix() if path.is_relative_to(root) else path.name
    try:
        with path.open(encoding="utf-8") as file:
            source = file.read(LONGEST + 1)
    except OSError as error:
        fix = "name a script as <guide>/<script>.py"
        raise BenchbookError(Problem(shown_path, 1, f"cannot be read ({error.strerror})", fix)) from error
    except UnicodeDecodeError as error:
        raise BenchbookError(Problem(shown_path, 1, "is not UTF-8 text", "save it as UTF-8")) from error
    return parse_script(source, shown_path, f"{path.parent.name}/{path.name}")


# One check asks for most scripts several times.
@lru_cache(maxsize=1024)
def parse_script(source: str, path: str, reference: str) -> Script:
    """Parse the text of a script; `path` is how errors name it. Raises as `read_script` does."""
    if len(source) > LONGEST:
        what = f"has more than {LONGEST} characters"
        raise BenchbookError(
            Problem(path, 1, what, "keep data in a file beside it, and name that in `inputs`")
        )
    # A page shows a comment too, whose words a direction mark puts in another order; no digest has comments.
    if (hidden := HIDDEN.search(source)) is not None:
        what = f"holds an invisible character (U+{ord(hidden[0]):04X})"
        line = source.count("\n", 0, hidden.start()) + 1
        raise BenchbookError(Problem(path, line, what, "remove it, or write it as an escape in a string"))
    if (blank := _BLANK.search(source)) is not None:
        line = source.count("\n", 0, blank.start()) + 1
        raise BenchbookError(Problem(path, line, "holds white space alone, or ends a page", "remove it"))
    # Python reads it as the file it is then: a comment in UTF-7 is code to a reader who runs it.
    for number, said in enumerate(source.split("\n", 2)[:2], start=1):
        if (named := _ENCODING.match(said)) and named[1].lower() not in ("utf-8", "utf8"):
            what = f"names the encoding {named[1]}, in which it would say something else"
            raise BenchbookError(Problem(path, number, what, "remove that line: it is UTF-8"))
    if (form := _FORM.search(source)) is not None:
        line = source.count("\n", 0, form.start()) + 1
        what = f"holds `{form[0]}`, of which Colab makes a form that hides the code beside it"
        raise BenchbookError(Problem(path, line, what, "write the comment without the @"))
    tree = _parse(source, path)
    cells = tuple(_cells(source))
    problems = [*_head_problems(tree, cells, path), *_cell_problems(cells, path)]
    if len(reference) > LONGEST_REFERENCE:
        what = f"`{reference}` has more than the {LONGEST_REFERENCE} characters that its record can name"
        problems.append(Problem(path, 1, what, "give the script or its folder a shorter name"))
    if not REFERENCE.match(reference):
        fix = "name folder and file with lower-case letters, digits and underscores, beginning with a letter"
        problems.append(Problem(path, 1, f"`{reference}` cannot be referred to", fix))
    if problems:
        raise BenchbookError(*problems)
    shown: dict[str, ParameterValue] = {}
    shown_problems: list[Problem] = []
    if cells[0].name == PARAMETERS:
        shown, shown_problems = shown_parameters(cells[0].source, cells[0].start, path)
    metadata, metadata_problems = read_metadata(source, path)
    problems = [*shown_problems, *metadata_problems]
    if metadata is not None:
        problems += override_problems(metadata, shown, path)
    if problems or metadata is None:
        raise BenchbookError(*problems)
    return Script(path, reference, source, ast.get_docstring(tree) or "", metadata, cells, shown)


def _parse(source: str, path: str) -> ast.Module:
    try:
        with warnings.catch_warnings(action="ignore"):
            tree = ast.parse(source)
            _see_that_it_can_be_read(tree, path)
            if _compiled(tree)[0] > MOST_COMPILED:
                what = (
                    f"compiles to more than {MOST_COMPILED} parts: each way out of a `try` has its `finally`"
                )
                raise BenchbookError(Problem(path, 1, what, "write what a `finally` does as a function"))
            scopes, names = _scopes(tree)
            if scopes * names > MOST_SEEN:
                what = f"has {scopes} functions, classes and comprehensions, and {names} names"
                fix = f"write fewer: {MOST_SEEN} is the most that one times the other may be"
                raise BenchbookError(Problem(path, 1, what, fix))
            # Only compiling finds a `return` outside a function, or a `__future__` that comes too late.
            compile(source, path, "exec", dont_inherit=True)
        return tree
    except SyntaxError as error:
        what = f"is not valid Python ({error.msg})"
        raise BenchbookError(Problem(path, error.lineno or 1, what, "fix the syntax")) from error
    except (ValueError, RecursionError, MemoryError) as error:
        # What its parser has no room for, or a number that it does not read.
        what = f"is no Python that can be read ({str(error) or type(error).__name__})"
        raise BenchbookError(Problem(path, 1, what, "write its expressions shorter")) from error


def _see_that_it_can_be_read(tree: ast.Module, path: str) -> None:
    """Raise BenchbookError for what stands too deep in others, and for a text that no file can hold."""
    waiting: list[tuple[ast.AST, int, int]] = [(tree, 1, 0)]
    while waiting:
        node, line, depth = waiting.pop()
        line = getattr(node, "lineno", line)
        if depth > DEEPEST_NESTING:
            what = f"nests more than {DEEPEST_NESTING} expressions and statements in each other"
            raise BenchbookError(Problem(path, line, what, "give parts of it names, or functions"))
        if (
            isinstance(node, ast.Constant)
            and isinstance(node.value, str)
            and LONE_SURROGATE.search(node.value)
        ):
            what = "holds half of a letter (\\ud800 to \\udfff), which no file can"
            raise BenchbookError(Problem(path, line, what, "write the whole letter"))
        waiting += [(inner, line, depth + 1) for inner in ast.iter_child_nodes(node)]


def _compiled(node: ast.AST) -> tuple[int, int]:
    """How many parts compiling a statement makes, and by how many ways it is left, each with a `finally`."""
    last = node.finalbody if isinstance(node, ast.Try | ast.TryStar) else []
    copied = set(map(id, last))
    parts, ways = 1, int(isinstance(node, ast.Return | ast.Break | ast.Continue))
    for child in ast.iter_child_nodes(node):
        if id(child) in copied:
            continue
        within, left = (
            _compiled(child) if isinstance(child, _BLOCKS) else (sum(1 for _ in ast.walk(child)), 0)
        )
        parts, ways = parts + within, ways + left
    copies = 2 + ways
    for within, left in map(_compiled, last):
        parts, ways = parts + copies * within, ways + copies * left
    return parts, 0 if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef) else ways


def _scopes(tree: ast.Module) -> tuple[int, int]:
    """How many scopes of their own a script has within it, and how many names, which each may see."""
    scopes, names = 0, set()
    for node in ast.walk(tree):
        scopes += isinstance(node, _SCOPES)
        if isinstance(node, ast.Name | ast.arg):
            names.add(node.id if isinstance(node, ast.Name) else node.arg)
    return scopes, len(names)


def _cells(source: str) -> Iterator[Cell]:
    lines = source.split("\n")
    marks = [(n, m) for n, line in enumerate(lines, start=1) if (m := MARKER.match(line))]
    for (line, match), (end, _) in itertools.pairwise([*marks, (len(lines) + 1, None)]):
        body = lines[line : end - 1]
        first = next((i for i, text in enumerate(body) if text.strip()), len(body))
        while body and not body[-1].strip():
            body.pop()
        assert match is not None
        yield Cell(match["name"] or "", line, line + first + 1, "\n".join(body[first:]))


def _head_problems(tree: ast.Module, cells: Sequence[Cell], path: str) -> Iterator[Problem]:
    said = ast.get_docstring(tree)
    if said is None:
        yield Problem(path, 1, "has no docstring", "begin it with one that says what it measures")
    # The notebook of a script begins with it, as Markdown.
    elif holds_markup(said) or _MORE_THAN_WORDS.search(said) or HIDDEN.search(said):
        what = "its docstring holds markup, a link or an invisible character"
        yield Problem(path, tree.body[0].lineno, what, "say in plain words what it measures")
    first = cells[0].line if cells else None
    if first is None:
        yield Problem(path, 1, "has no cell", "begin each part of it with a line `# %% name`")
        return
    for statement in tree.body[1 if ast.get_docstring(tree) is not None else 0 :]:
        if statement.lineno < first:
            fix = "move it below the first `# %% name`"
            yield Problem(path, statement.lineno, "has code before its first cell", fix)


def _cell_problems(cells: Sequence[Cell], path: str) -> Iterator[Problem]:
    seen: dict[str, int] = {}
    parts: dict[str, ast.Module] = {}
    for cell in cells:
        if not CELL_NAME.match(cell.name):
            fix = "name it with 80 lower-case letters, digits and underscores at most, a letter first"
            yield Problem(path, cell.line, f"the cell name `{cell.name}` cannot be referred to", fix)
        if (size := len(cell.source)) > LONGEST_CELL:
            what = f"the cell `{cell.name}` has {size} characters, and {LONGEST_CELL} are the most"
            yield Problem(path, cell.line, what, "part it, or keep data in a file beside it")
        if run := _RUN.search(cell.source):
            line = cell.start + cell.source.count("\n", 0, run.start())
            yield Problem(path, line, f"has {len(run[0])} {run.lastgroup} in a row", "remove them")
        if cell.name in seen:
            what = f"the cell `{cell.name}` is there twice (first on line {seen[cell.name]})"
            yield Problem(path, cell.line, what, "rename one of the two")
        seen.setdefault(cell.name, cell.line)
        try:
            parts[cell.name] = ast.parse(cell.source)
        except SyntaxError as error:
            what = f"the cell `{cell.name}` does not stand alone ({error.msg})"
            fix = "begin each cell between two statements of the top level, and indent `# %%` within a string"
            yield Problem(path, cell.line, what, fix)
            return
        try:
            for region in regions_of(cell.source):
                line = cell.start + region.first - 1
                if not CELL_NAME.match(region.name):
                    fix = "name it with 80 lower-case letters, digits and underscores at most, a letter first"
                    yield Problem(path, line, f"the region name `{region.name}` cannot be referred to", fix)
                if region.name in seen:
                    what = f"the region `{region.name}` is there twice (first on line {seen[region.name]})"
                    yield Problem(path, line, what, "rename one of the two")
                seen.setdefault(region.name, line)
        except UnevenRegionError as error:
            yield Problem(path, cell.start + error.line - 1, str(error), error.fix)
    if PARAMETERS in seen and cells[0].name != PARAMETERS:
        yield Problem(path, seen[PARAMETERS], "the `parameters` cell is not the first", "move it to the top")
    if not cells or cells[-1].name != CHECKS:
        fix = "end the script with `# %% checks`, a cell that asserts what must be true of the result"
        yield Problem(path, cells[-1].line if cells else 1, "its last cell is not `checks`", fix)
    elif not any(isinstance(node, ast.Assert) for node in ast.walk(parts[CHECKS])):
        yield Problem(path, cells[-1].line, "its `checks` cell asserts nothing", "assert what must be true")
