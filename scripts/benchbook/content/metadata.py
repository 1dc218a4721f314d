"""Read a script's inline metadata (PEP 723): its dependencies and its `[tool.benchbook]` table."""

from __future__ import annotations

import itertools
import math
import re
import tomllib
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, TypeGuard

from packaging.requirements import InvalidRequirement, Requirement
from packaging.specifiers import InvalidSpecifier, SpecifierSet
from packaging.version import InvalidVersion, Version

from benchbook.content.arithmetic import NotArithmeticError, names_in
from benchbook.content.bounds import LARGEST, load_toml
from benchbook.content.formats import INVISIBLE, LONE_SURROGATE
from benchbook.content.positions import toml_error_line, toml_key_lines
from benchbook.content.problems import Problem, did_you_mean
from benchbook.content.records import MOST_RANKS, MOST_RUNS
from benchbook.content.traces import MOST_TRACES
from benchbook.content.units import UNITS

# The regular expression that PEP 723 prescribes.
BLOCK = re.compile(r"(?m)^# /// (?P<type>[a-zA-Z0-9-]+)$\s(?P<content>(^#(| .*)$\s)+)^# ///$")
# Lines of a comment, one below the other, and the end of a block among them.
_COMMENT = re.compile(r"(?m)^#(?: .*)?$(?:\n#(?: .*)?$)*+")
_END = "\n# ///\n"
NEEDS = ("cpu", "accelerator", "cuda", "rocm", "xpu", "mps")
# What a script may need to be allowed besides; `benchbook.machines.rights` tries each on this machine.
RIGHTS = ("root", "memory_limit", "dropped_caches", "shaped_network")
NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,79}\Z")
METERS_ON_REQUEST = ("cpu_allocator",)
# An environment of its own: part of the names of a folder and a file.
VENV = re.compile(r"[a-z][a-z0-9]{0,29}\Z")
# What a point of a matrix may set beside parameters.
RESERVED = ("ranks", "environment", "meters", "repeats")
# How many processes measure what scatters, and what does not: one more than it takes to see that it agrees.
NOISY_REPEATS, EXACT_REPEATS = 8, 2
# Each variant is a run of minutes, and all are held at once.
MOST_POINTS = 1000
# Kinds of machine, and machines, with values of their own: seven times what any script has.
MOST_KINDS = 20
# Each is read whole for each variant.
MOST_INPUTS = 20
# Their names are keys of records.
LONGEST_PATH = 400
# Each is looked for in the history of its script.
MOST_EARLIER = 20
_DIGEST = re.compile(r"sha256:[0-9a-f]{64}\Z")
# The longest campaign, in seconds: a week.
LONGEST_TIMEOUT = 7 * 24 * 3600
# What nobody sees, which a record holds nowhere but in what was printed.
_UNSEEN = re.compile(f"[{INVISIBLE}]")
# What names the lowest version that it admits.
FLOORS = (">=", "==", "~=")
# As long as a dependency: a number of some thousand digits is none that Python reads.
LONGEST_SPECIFIER = 200
# A notebook hands them to a shell, between double quotes.
_DEPENDENCY = re.compile(r"[\w.\[\],<>=!~ ;'()*+-]{1,200}\Z", re.ASCII)
# One comparison: it holds or not on a machine whose Python, or system, is known.
_MARKER = re.compile(
    r"""(?:python_version|python_full_version|sys_platform|platform_system|platform_machine) """
    r"""(?:==|!=|<=?|>=?) "[\w.]+"\Z""",
    re.ASCII,
)
# What a run has to do on an accelerator: values drawn by the host, operations by number format, bytes to and
# from the device's memory, and seconds of whatever else.
WORK = ("host_values", "fp32", "tf32", "bf16", "fp8", "bytes", "seconds")

Scalar = bool | int | float | str | None
ParameterValue = Scalar | list[Scalar]


@dataclass(frozen=True)
class Metric:
    """A named quantity that a script yields.

    Parameters:
        name: A top-level name of the script.
        unit: One of `benchbook.content.units.UNITS`.
        better: "lower", "higher" or None where neither is better.
        memory: "device" if it counts bytes of the device's memory, so that a page can say where it fits.
        repeats: How many processes it takes; None for as many as its unit asks for.
        blocks: Whether the script gives a list, one value for each timed block of the process. The median of
            the blocks is the sample of that process; blocks are never taken for processes.
        seeds: Whether the script gives a list, one value for each seed of its own. Seeds are what such a
            metric scatters over: they are its samples, and two of them are compared seed by seed.
    """

    name: str
    unit: str
    better: str | None = None
    memory: str | None = None
    repeats: int | None = None
    blocks: bool = False
    seeds: bool = False

    @property
    def processes(self) -> int:
        """How many fresh processes it takes to be believed."""
        return self.repeats or (NOISY_REPEATS if UNITS[self.unit].noisy else EXACT_REPEATS)


@dataclass(frozen=True)
class ScriptMetadata:
    """What the head of a script declares; `lines` maps each key to its line in the file.

    `needs` names kinds of machine, one of which it must be, and rights (`RIGHTS`), all of which it must have.
    `worth` says what is recorded first where time is short: the scripts with the largest are the first group.
    `work` is what one run has to do (`WORK`), each a number or an arithmetic expression of parameters.
    `traces` are names that hold, after the last cell, the path of a profiler's trace, or None.
    `venv` names the environment that it runs in, where its dependencies clash with those of the others.
    `earlier_checks` are digests of its code as it was when its `checks` cell, and nothing else, asked for
    something else: what was measured then is measured by this code.
    """

    requires_python: str
    dependencies: tuple[str, ...]
    needs: tuple[str, ...] = ("cpu", "accelerator")
    ranks: int = 1
    timeout: float = 600.0
    repeats: int | None = None
    environment: dict[str, str] = field(default_factory=dict)
    meters: tuple[str, ...] = ()
    inputs: tuple[str, ...] = ()
    traces: tuple[str, ...] = ()
    venv: str = ""
    earlier_checks: tuple[str, ...] = ()
    metrics: dict[str, Metric] = field(default_factory=dict)
    on: dict[str, dict[str, ParameterValue]] = field(default_factory=dict)
    repeats_on: dict[str, int] = field(default_factory=dict)
    smallest: dict[str, ParameterValue] = field(default_factory=dict)
    worth: int = 0
    work: dict[str, str | float] = field(default_factory=dict)
    matrix: tuple[dict[str, Any], ...] = ()
    lines: dict[str, int] = field(default_factory=dict)

    @property
    def rights(self) -> tuple[str, ...]:
        """What it needs to be allowed on the machine (`RIGHTS`)."""
        return tuple(need for need in self.needs if need in RIGHTS)

    def line_of(self, key: str) -> int:
        """The line on which `key` is set, or that of the metadata block."""
        return self.lines.get(key, self.lines.get("", 1))


def read_metadata(source: str, path: str) -> tuple[ScriptMetadata | None, list[Problem]]:
    """What the head of `source` declares, or None with the problems that prevent knowing it."""
    blocks = [match for match in blocks_of(source) if match["type"] == "script"]
    if len(blocks) != 1:
        what = "has no inline metadata" if not blocks else "has two blocks of inline metadata"
        fix = "give it one block of comments from `# /// script` to `# ///` below the docstring"
        return None, [Problem(path, 1, what, fix)]
    first = source.count("\n", 0, blocks[0].start()) + 1
    text = "".join(
        line[2:] if line.startswith("# ") else line[1:] for line in blocks[0]["content"].splitlines(True)
    )
    try:
        table = load_toml(text)
    except tomllib.TOMLDecodeError as error:
        line = first + (toml_error_line(error) or 1)
        return None, [Problem(path, line, f"its metadata is not valid TOML ({error})", "fix the TOML")]
    lines = {"": first} | {key: first + line for key, line in toml_key_lines(text).items()}
    problems = list(_problems(table, path, lines))
    if problems:
        return None, problems
    return _build(table, lines), []


def blocks_of(source: str) -> Iterator[re.Match[str]]:
    """All that `BLOCK` finds in `source`.

    By itself it would try each head up to the end of its comment. Where a comment is cut behind its last
    `# ///`, a block begins with the first head, or there is none.
    """
    for comment in _COMMENT.finditer(source):
        end = f"{comment[0]}\n".rfind(_END)
        if end >= 0 and (
            block := BLOCK.search(source, comment.start(), comment.start() + end + len(_END) - 1)
        ):
            yield block


# Smaller numbers lose their digits, and no axis has room for them, nor for what lies between two of them.
MOST_TINY = 1e-290


def is_parameter_value(value: object) -> bool:
    """Whether a parameter can have this value: JSON keeps it as it is, and UTF-8 has bytes for its text."""
    scalars = value if isinstance(value, list) else [value]
    return all(
        item is None
        or isinstance(item, bool)
        or (isinstance(item, str) and LONE_SURROGATE.search(item) is None)
        or (isinstance(item, int) and abs(item) <= LARGEST)
        or (isinstance(item, float) and (item == 0 or MOST_TINY <= abs(item) <= 1 / MOST_TINY))
        for item in scalars
    )


def is_parameter_name(text: str) -> bool:
    """Whether parameters and metrics can be called so: references and records spell names in ASCII."""
    return NAME.match(text) is not None


def _is_strings(value: object) -> TypeGuard[list[str]]:
    return isinstance(value, list) and all(isinstance(item, str) for item in value)


def _is_environment(value: object) -> bool:
    return isinstance(value, dict) and all(
        is_parameter_name(name)
        and isinstance(item, str)
        and _UNSEEN.search(item) is None
        and len(item) <= 400
        for name, item in value.items()
    )


def _is_count(value: object) -> TypeGuard[int]:
    return isinstance(value, int) and not isinstance(value, bool) and value >= 1


def _is_ranks(value: object) -> bool:
    return _is_count(value) and value <= MOST_RANKS


def _is_repeats(value: object) -> bool:
    return _is_count(value) and value <= MOST_RUNS


def _is_worth(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and 0 <= value <= 9


def _is_seconds(value: object) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool) and 0 < value <= LONGEST_TIMEOUT


def _is_needs(value: object) -> bool:
    if not _is_strings(value):
        return False
    kinds = set(value) - set(RIGHTS)
    return bool(kinds) and kinds <= set(NEEDS)


def _is_meters(value: object) -> bool:
    return _is_strings(value) and set(value) <= set(METERS_ON_REQUEST)


def _is_inside(value: object) -> bool:
    return (
        _is_strings(value)
        and len(value) <= MOST_INPUTS
        and not any(item.startswith(("/", "~")) or ".." in item.split("/") for item in value)
        and all(len(item) <= LONGEST_PATH and _UNSEEN.search(item) is None for item in value)
    )


def _is_traces(value: object) -> bool:
    names = value if _is_strings(value) else []
    return 0 < len(names) == len(set(names)) <= MOST_TRACES and all(map(is_parameter_name, names))


def _is_venv(value: object) -> bool:
    return isinstance(value, str) and VENV.match(value) is not None


def _is_earlier(value: object) -> bool:
    digests = value if _is_strings(value) else []
    return 0 < len(digests) == len(set(digests)) <= MOST_EARLIER and all(map(_DIGEST.match, digests))


def _is_on(value: object) -> bool:
    return isinstance(value, dict) and len(value) <= MOST_KINDS


def _is_matrix(value: object) -> bool:
    if isinstance(value, dict):
        lists = [values for values in value.values() if isinstance(values, list)]
        return len(lists) == len(value) and 1 <= math.prod(map(len, lists or [[]])) <= MOST_POINTS
    return (
        isinstance(value, list)
        and 1 <= len(value) <= MOST_POINTS
        and all(isinstance(point, dict) and point for point in value)
    )


# What each key of [tool.benchbook] must be: a test, and the words that say so.
KEYS: dict[str, tuple[Callable[[object], bool], str]] = {
    "needs": (_is_needs, f"a list of one or more of {', '.join(NEEDS)}, and any of {', '.join(RIGHTS)}"),
    "ranks": (_is_ranks, f"a whole number of processes, 1 to {MOST_RANKS}"),
    "timeout": (_is_seconds, "a number of seconds, a week at most"),
    "repeats": (_is_repeats, f"a whole number of runs, 1 to {MOST_RUNS}"),
    "environment": (_is_environment, 'a table of strings, such as { OMP_NUM_THREADS = "2" }'),
    "meters": (_is_meters, f"a list of {', '.join(METERS_ON_REQUEST)}"),
    "inputs": (_is_inside, f"a list of {MOST_INPUTS} paths at most, below the script's folder"),
    "traces": (_is_traces, f"a list of names of the script, {MOST_TRACES} at most, each once"),
    "venv": (_is_venv, "a name of up to 30 lower-case letters and digits, a letter first"),
    "earlier_checks": (
        _is_earlier,
        f"a list of digests of code that records hold, {MOST_EARLIER} at most, each once",
    ),
    "metrics": (lambda value: isinstance(value, dict), "a table of metrics"),
    "on": (_is_on, f"a table of kinds of machine, {MOST_KINDS} at most"),
    "smallest": (lambda value: isinstance(value, dict), "a table of parameters"),
    "worth": (_is_worth, "a whole number from 0 to 9, the largest for what is recorded first"),
    "work": (lambda value: isinstance(value, dict), f"a table of {', '.join(WORK)}"),
    "matrix": (
        _is_matrix,
        f"a table of lists (a product) or a list of tables, of {MOST_POINTS} points at most",
    ),
}


def _problems(table: Mapping[str, Any], path: str, lines: Mapping[str, int]) -> Iterator[Problem]:
    def at(key: str) -> int:
        return lines.get(key, lines[""])

    python, dependencies = table.get("requires-python"), table.get("dependencies")
    if not isinstance(python, str):
        yield Problem(
            path, lines[""], "its metadata lacks `requires-python`", 'add requires-python = ">=3.11"'
        )
    elif not _is_specifier(python):
        what = f"its `requires-python` is {python[:LONGEST_SPECIFIER]!r}, which names no versions"
        fix = f'write it as pip reads it, such as ">=3.11", in {LONGEST_SPECIFIER} characters at most'
        yield Problem(path, at("requires-python"), what, fix)
    if not _is_strings(dependencies):
        yield Problem(
            path, lines[""], "its metadata lacks `dependencies`", "add the list of packages it imports"
        )
    else:
        for dependency in dependencies:
            if why := _why_no_dependency(dependency):
                what = f"its dependency `{dependency}` {why}"
                fix = 'write a name and its lowest version, such as "torch>=2.11"'
                yield Problem(path, at("dependencies"), what, fix)
    tools = table.get("tool", {})
    own = tools.get("benchbook", {}) if isinstance(tools, dict) else None
    if not isinstance(own, dict):
        yield Problem(
            path, at("tool"), "its [tool.benchbook] is not a table", "set the keys below that heading"
        )
        return
    for key, value in own.items():
        if key not in KEYS:
            yield Problem(
                path, at(key), f"[tool.benchbook] has the unknown key `{key}`", did_you_mean(key, KEYS, "key")
            )
        elif not KEYS[key][0](value):
            yield Problem(path, at(key), f"`{key}` is {value!r:.200}", f"make it {KEYS[key][1]}")
        elif key == "matrix":
            yield from _point_problems(value, path, at)
        elif key == "work":
            yield from _work_problems(value, path, at)
    metrics = own.get("metrics", {})
    for name, declared in metrics.items() if isinstance(metrics, dict) else ():
        yield from _metric_problems(name, declared, path, at(name))
    kinds = own.get("on", {})
    for kind, override in kinds.items() if isinstance(kinds, dict) else ():
        if not isinstance(override, dict):
            yield Problem(
                path, at(kind), f"[tool.benchbook.on] `{kind}` is not a table", "set parameters below it"
            )
        elif "repeats" in override and not _is_repeats(override["repeats"]):
            what = f"[tool.benchbook.on.{kind}] has the `repeats` {override['repeats']!r}"
            yield Problem(path, at("repeats"), what, f"make it {KEYS['repeats'][1]}")


def _is_specifier(text: str) -> bool:
    try:
        SpecifierSet(text)
    except InvalidSpecifier:
        return False
    return len(text) <= LONGEST_SPECIFIER


def _why_no_dependency(text: str) -> str:
    """Why it is not a package of the index in versions that can be compared; empty if it is."""
    if _DEPENDENCY.match(text) is None:
        return "holds a character that none needs, or too many"
    try:
        requirement = Requirement(text)
        for each in requirement.specifier:
            if each.operator in FLOORS:
                Version(each.version)
    except (InvalidRequirement, InvalidVersion) as error:
        return f"is not a requirement ({' '.join(str(error).split())})"
    if requirement.marker is not None and _MARKER.match(str(requirement.marker)) is None:
        return "has a marker that is more than one comparison, with the Python or the system first"
    return "names an address" if requirement.url else ""


def _work_problems(work: Mapping[str, Any], path: str, at: Callable[[str], int]) -> Iterator[Problem]:
    for key, value in work.items():
        if key not in WORK:
            what = f"[tool.benchbook.work] has the unknown key `{key}`"
            yield Problem(path, at(key), what, did_you_mean(key, WORK, "key"))
            continue
        try:
            names_in(value)
        except NotArithmeticError as error:
            what = f"the work `{key}` is {value!r}, which {error}"
            yield Problem(path, at(key), what, "write a number, or an expression of parameters")


def _point_problems(matrix: Any, path: str, at: Callable[[str], int]) -> Iterator[Problem]:
    for key in RESERVED:
        fits, words = KEYS[key]
        wrong = [point[key] for point in _points(matrix) if key in point and not fits(point[key])]
        if wrong:
            what = f"a point of the matrix has the `{key}` {wrong[0]!r}"
            yield Problem(path, at(key), what, f"make it {words}")


def _points(matrix: Any) -> list[dict[str, Any]]:
    """The points of a matrix: the product of a table of lists, or the tables of a list as they are."""
    if isinstance(matrix, dict):
        return [dict(zip(matrix, point, strict=True)) for point in itertools.product(*matrix.values())]
    return list(matrix)


def _metric_problems(name: str, declared: object, path: str, line: int) -> Iterator[Problem]:
    if not is_parameter_name(name):
        fix = "name it as the script does, with ASCII letters, digits and underscores"
        yield Problem(path, line, f"the metric `{name}` is not a name of a script", fix)
    if not isinstance(declared, dict) or not isinstance(declared.get("unit"), str):
        yield Problem(path, line, f"the metric `{name}` has no unit", f'write {name} = {{ unit = "..." }}')
        return
    if declared["unit"] not in UNITS:
        what = f"the metric `{name}` has the unknown unit `{declared['unit']}`"
        yield Problem(path, line, what, did_you_mean(declared["unit"], UNITS, "unit"))
    allowed: dict[str, tuple[object, ...]] = {
        "better": ("lower", "higher"),
        "memory": ("device",),
        "blocks": (True, False),
        "seeds": (True, False),
    }
    for key, value in declared.items():
        if key == "unit":
            continue
        if key == "repeats":
            if not _is_repeats(value):
                what = f"`repeats` of the metric `{name}` is {value!r}"
                yield Problem(path, line, what, f"make it {KEYS['repeats'][1]}")
        elif key not in allowed:
            fix = did_you_mean(key, ["unit", "repeats", *allowed], "key")
            yield Problem(path, line, f"the metric `{name}` has the unknown key `{key}`", fix)
        elif value not in allowed[key]:
            fix = f"make it one of {', '.join(map(str, allowed[key]))}"
            yield Problem(path, line, f"`{key}` of the metric `{name}` is {value!r}", fix)


def _build(table: Mapping[str, Any], lines: dict[str, int]) -> ScriptMetadata:
    own = dict(table.get("tool", {}).get("benchbook", {}))
    for key in ("needs", "meters", "inputs", "traces", "earlier_checks"):
        if key in own:
            own[key] = tuple(own[key])
    own["metrics"] = {name: Metric(name, **declared) for name, declared in own.get("metrics", {}).items()}
    tables = own.get("on", {})
    own["repeats_on"] = {kind: table["repeats"] for kind, table in tables.items() if "repeats" in table}
    own["on"] = {kind: {k: v for k, v in table.items() if k != "repeats"} for kind, table in tables.items()}
    own["matrix"] = tuple(_points(own.get("matrix", ())))
    return ScriptMetadata(
        requires_python=table["requires-python"],
        dependencies=tuple(table["dependencies"]),
        lines=lines,
        **own,
    )
