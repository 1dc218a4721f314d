"""Take in records made elsewhere: a file is put in place whole, or refused with every reason."""

from __future__ import annotations

import base64
import json
import zlib
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from itertools import islice
from pathlib import Path
from typing import Any, TypeVar

from benchbook.checking.copies import Known, copied_run_problems, copy_problems, known_samples
from benchbook.checking.origins import (
    changed_fields,
    commit_problems,
    machine_origin_problems,
    model_problems,
    quoted_alike_problems,
    record_origin_problems,
    recorded_code_problems,
    strange_words,
    worded,
)
from benchbook.checking.overlays import Changes, compare_records
from benchbook.checking.past_records import past_samples
from benchbook.checking.plausibility import kind_problems, plausibility_problems, speed_problems
from benchbook.checking.quotations import quotation_problems
from benchbook.checking.shown import shown_problems
from benchbook.checking.traces import (
    TraceFile,
    add_sizes,
    committed_traces,
    entry_problems,
    guide_problems,
    named_traces,
    repacked_problems,
    trace_problems,
)
from benchbook.content.formats import count_marks, from_table, has_same, is_same, too_large
from benchbook.content.machines import (
    MachineDescription,
    description_here,
    differing_key,
    machine_table,
    text_over,
)
from benchbook.content.problems import BenchbookError, Problem, few
from benchbook.content.project import Project
from benchbook.content.records import (
    LARGEST_BUNDLE,
    MOST_CAMPAIGNS,
    Campaign,
    Record,
    bundle_digest,
    campaigns_of,
    described_campaigns,
    dump_record,
    load_record,
    read_packed,
    record_from,
    record_table,
    superseded_traces,
    trace_places,
    write_together,
)
from benchbook.content.revisions import laid_out
from benchbook.content.script import Script, read_script
from benchbook.content.unfinished import changing_records
from benchbook.content.validation import machine_problems, parse_json, record_problems
from benchbook.query.freshness import all_in_one

T = TypeVar("T")
# So much of a value is told.
LONGEST_VALUE = 60
# Of `count_marks`: ten times those of every record of this handbook together.
MOST_MARKS = 2_000_000
TO_REPLACE = "pass --replace if that is meant"
# Who has so many problems begins with these.
MOST_PROBLEMS = 1000


@dataclass(frozen=True)
class Imported:
    """What an import did.

    Parameters:
        written: The paths written, relative to the project.
        removed: The traces that went, likewise: those of variants that were replaced.
        replaced: What was there before and is no more, a line for each record.
        added: What was added to a machine that was there before, or to a session of it, likewise.
    """

    written: tuple[str, ...]
    replaced: tuple[str, ...] = ()
    added: tuple[str, ...] = ()
    removed: tuple[str, ...] = ()


def import_bundles(
    project: Project,
    paths: Sequence[Path],
    replacing: bool = False,
    reviewed: bool = False,
    machine: str | None = None,
    repository: Path | None = None,
) -> Imported:
    """Put the machines and the records of bundles in place.

    Several may hold the records of one machine, as where several of a kind shared the work.

    Parameters:
        project: The checkout.
        paths: The bundles.
        replacing: Whether they may change what is here: take the place of it, or add to its sessions.
        reviewed: Whether they were recorded from a commit that was reviewed; what the maintainers' machines
            say comes in no other way.
        machine: The only one whose bundles are taken; by default any, and then nothing is added to one that
            is here already unless they may change what is here.
        repository: Whose history the commits of their sessions are looked up in; by default the checkout's.

    Raises:
        BenchbookError: Anything in any of them is not right; then nothing was written.
    """
    with changing_records(project):
        contents, done = _judged(project, paths, replacing, reviewed, machine, repository or project.root)
        _put(project, contents)
    return done


def _judged(
    project: Project,
    paths: Sequence[Path],
    replacing: bool,
    reviewed: bool,
    machine: str | None,
    repository: Path,
) -> tuple[dict[Path, bytes | None], Imported]:
    """The files that bundles become in a project (None of one that goes), and what to say of them.

    Raises:
        BenchbookError: Anything in any of the bundles is not right.
    """
    problems: list[Problem] = []
    bundles = []
    for path in paths:
        try:
            bundles.append((str(path), _read_bundle(path)))
        except BenchbookError as error:
            problems += error.problems
    seen: dict[tuple[str, str], tuple[str, Any]] = {}
    machines: dict[str, Any] = {}
    # All is read before anything is written: a record here that cannot be read keeps everything out.
    placed: list[_Placed] = []
    for shown, bundle in bundles:
        described = bundle["machine"]
        refused = _misshapen(project, described, bundle["records"], shown)
        if not refused and machine not in {None, described["name"]}:
            what = f"it is of the machine {described['name']}, and {machine} was asked for"
            refused = [Problem(shown, 1, what, "leave it out, or name its machine with `--machine`")]
        found = _refusals(project, bundle, shown, reviewed, repository, placed)
        refused = refused or list(islice(found, MOST_PROBLEMS))
        # Last, for their files are read: of names that the scripts declare, and as large as a guide may have.
        refused = refused or list(islice(_trace_problems(bundle, shown), MOST_PROBLEMS))
        refused = refused or list(islice(_repacked(project, bundle, shown, placed), MOST_PROBLEMS))
        problems += refused or _repeated(bundle, shown, seen)
        if not refused and (
            odd := differing_key(machines.setdefault(described["name"], described), described)
        ):
            what = f"another of the bundles describes {described['name']} otherwise (its {odd} differs)"
            problems.append(Problem(shown, 1, what, "record with `--recorded-by` and your name"))
        # Once one is refused, of the others only what speaks against them by themselves is told.
        if not problems:
            placed.append(_laid_over(project, shown, bundle, placed))
    if problems:
        raise BenchbookError(*problems)
    problems = [
        problem
        for one in placed
        for problem in (
            *one.links(project),
            *one.refusals(replacing, reviewed, machine is not None),
        )
    ]
    if problems:
        raise BenchbookError(*problems)
    contents = {path: content for one in placed for path, content in one.contents(project).items()}
    # Last, for every page is read.
    names = few([str(path) for path in paths])
    if refused := list(islice(shown_problems(project, contents, names), MOST_PROBLEMS)):
        raise BenchbookError(*refused)
    replaced = dict.fromkeys(line for one in placed for line in one.found.replaced)
    added = dict.fromkeys(line for one in placed for line in (*one.found.added, *one.found.joined))
    written = tuple(project.relative(path) for path, content in contents.items() if content is not None)
    removed = tuple(project.relative(path) for path, content in contents.items() if content is None)
    return contents, Imported(written, tuple(replaced), tuple(added), removed)


def _put(project: Project, contents: Mapping[Path, bytes | None]) -> None:
    """Put files in place, all or none. One whose content is None goes.

    Raises:
        BenchbookError: One cannot be written; then everything is as it was.
    """
    try:
        write_together(contents, project.root)
    except OSError as error:
        shown = project.relative(project.records)
        what = f"cannot be written ({error.strerror or error}), and nothing was imported"
        fix = "make room there, or make it writable, and import again"
        raise BenchbookError(Problem(shown, 1, what, fix)) from error


def import_at(
    project: Project,
    paths: Sequence[Path],
    revision: str,
    replacing: bool = False,
    machine: str | None = None,
) -> Imported:
    """As `import_bundles`, judged by what `revision` holds, as data, and laid over its records.

    Where no machine is named, nothing is taken of the reference machine, nor what changes anything here.

    Raises:
        BenchbookError: There is no such revision, or anything in the bundles is not right.
    """
    with changing_records(project), laid_out(project.root, revision) as there:
        contents, done = _judged(there, paths, replacing, True, machine, project.root)
        if machine is None:
            reference = there.config.reference_machine
            ours = f"{there.relative(there.records / reference)}/"
            changed = [*done.replaced, *done.added]
            if any(name.startswith(ours) for name in done.written):
                changed.insert(0, f"{reference}, the reference machine")
            if changed:
                fix = "say whose they are with `--machine`, which refuses all others"
                raise BenchbookError(
                    *(Problem(revision, 1, f"they would change {line}", fix) for line in changed)
                )
        places = {path: project.root / path.relative_to(there.root) for path in contents}
        if links := project.links_above(places.values()):
            raise BenchbookError(*links)
        # The bundles were laid over what that revision holds: what is otherwise here would go.
        others = [
            project.relative(place)
            for path, place in places.items()
            if _content(place) not in (_content(path), contents[path])
        ]
        if others and not replacing:
            what = f"is not as {revision} holds it, and would be written over"
            fix = f"import at a commit that holds it as it is here; or {TO_REPLACE}"
            raise BenchbookError(*(Problem(name, 1, what, fix) for name in others))
        _put(project, {place: contents[path] for path, place in places.items()})
    told = (f"{name}, which was not as {revision} holds it" for name in others)
    return replace(done, replaced=(*done.replaced, *told))


def _content(path: Path) -> bytes | None:
    """What a file holds; None where there is none that can be read."""
    with suppress(OSError):
        return path.read_bytes()
    return None


@dataclass(frozen=True)
class _Placed:
    """A bundle laid over what is here.

    Parameters:
        path: The bundle.
        machine: What it says of its machine.
        records: The records as they will be, by their place.
        found: What it changes of what is here.
        traces: The files of traces that it holds, by their digest.
    """

    path: str
    machine: MachineDescription
    records: dict[Path, Record]
    found: Changes
    traces: Mapping[str, bytes]

    def refusals(self, replacing: bool, reviewed: bool, named: bool) -> Iterator[Problem]:
        """What is here already and stays; `named` is whether this machine's bundles were asked for."""
        for what, fix in self.found.refused:
            yield Problem(self.path, 1, what, fix)
        for line in () if replacing else self.found.replaced:
            yield Problem(self.path, 1, f"it would replace {line}", TO_REPLACE)
        # A session is its measurer's: who else could say that more was measured in it?
        for line in () if replacing or reviewed else self.found.added:
            yield Problem(self.path, 1, f"it would add {line}", TO_REPLACE)
        # A machine is its measurer's too.
        fix = f"pass `--machine {self.machine.name}` if that is meant"
        for line in () if replacing or named else self.found.joined:
            yield Problem(self.path, 1, f"it would add {line}", fix)

    def links(self, project: Project) -> Iterator[Problem]:
        """The links through which it would be written, or would remove what lies elsewhere."""
        for link in project.links_above(self.contents(project)):
            yield Problem(self.path, 1, f"{link.path} {link.what}", link.fix)

    def contents(self, project: Project) -> dict[Path, bytes | None]:
        """The files that it becomes, with what each holds, and None of those that go.

        A trace comes before the record that names it, and goes after the one that names it no more.
        """
        described = project.records / self.machine.name / "machine.json"
        texts = {described: text_over(described, self.machine)}
        texts |= {target: dump_record(record) for target, record in self.records.items()}
        found: dict[Path, bytes | None] = {}
        for record in self.records.values():
            places = trace_places(project, record).items()
            found |= {place: self.traces[digest] for place, digest in places if digest in self.traces}
        found |= {place: text.encode() for place, text in texts.items()}
        for record in self.records.values():
            found |= dict.fromkeys(superseded_traces(project, record))
        return found


def _laid_over(project: Project, path: str, bundle: dict[str, Any], before: Sequence[_Placed]) -> _Placed:
    """A bundle laid over what is here and over the bundles before it, as if they had come in one by one.

    Only a machine that is new stays so for all of them, and need not be named.

    Raises:
        BenchbookError: What is here cannot be read.
    """
    beside = [one.machine for one in before]
    machine = worded(project, from_table(MachineDescription, bundle["machine"]), beside)
    records: dict[Path, Record] = {}
    found = Changes()
    if fields := changed_fields(project, machine, _description(project, machine.name, before)):
        shown = project.relative(project.records / machine.name / "machine.json")
        told = [f"{name} ({_short(old)} by {_short(new)})" for name, old, new in fields]
        found.replaced.append(f"{shown}: {few(told)}")
    # In its own words it was judged already, and in these `check` reads it.
    shown_as = json.loads(text_over(project.records / machine.name / "machine.json", machine))
    strange = machine_problems(shown_as, path) or [
        *strange_words(shown_as, path),
        *quoted_alike_problems(project, machine, beside, path),
    ]
    found.refused += [(problem.what, problem.fix) for problem in strange]
    is_here = description_here(project, machine.name) is not None
    scripts, here = project.scripts(), _records_of(project, machine.name, before)
    known = {name: record.script for record in here.values() for name in _measured_in(record)}
    for table in bundle["records"]:
        target = project.record_path(table["machine"], table["script"])
        old, new = here.get(target), record_from(table)
        records[target] = merged = _merge(old, new)
        title = f"{new.script} on {new.machine}"
        if (large := too_large(dump_record(merged).encode())) is not None:
            found.refused.append((f"{title}: {large}, so that none of it is read", "record fewer variants"))
        script = read_script(scripts[new.script], project.root)
        declared = {variant.name for variant in script.variants(machine.kinds)}
        campaigns = described_campaigns(merged.variants, script.codes, declared)
        if script.is_timed and len(campaigns) > 1:
            what = f"its variants would be of {len(campaigns)} campaigns, whose times cannot be compared"
            found.refused.append((f"{title}: {what}", all_in_one(script)))
        if old is not None:
            compare_records(old, new, merged, found)
            table = record_table(merged)
            copied = [
                *copied_run_problems(table, script, path),
                *copy_problems(table, {}, path, script=script),
            ]
            found.refused += [(f"{title}: {problem.what}", problem.fix) for problem in copied]
        elif is_here:
            whose = machine.owner or "the maintainers"
            found.joined.append(f"{title}, a machine of {whose} that is here already")
        for name in sorted(_measured_in(new)):
            if (whose := known.setdefault(name, new.script)) != new.script:
                what = f"{title}: campaign {name} is of {whose}, and a session is of one script"
                found.refused.append((what, "record again, in a campaign of its own"))
    sizes: dict[str, int] = {}
    for record in (here | records).values():
        add_sizes(sizes, record_table(record))
    found.refused += [(problem.what, problem.fix) for problem in guide_problems(sizes, machine.name, path)]
    return _Placed(path, machine, records, found, bundle["traces"])


def _measured_in(record: Record) -> list[str]:
    """The campaigns that a record has, but for those that are quoted."""
    return [name for name, one in record.campaigns.items() if isinstance(one, Campaign)]


def _description(project: Project, name: str, before: Sequence[_Placed]) -> Mapping[str, Any] | None:
    """What is said of a machine, by the last of the bundles before or else here; None where nothing is.

    Raises:
        BenchbookError: The one here cannot be read.
    """
    come = [machine_table(one.machine) for one in before if one.machine.name == name]
    return come[-1] if come else description_here(project, name)


def _records_of(project: Project, machine: str, before: Sequence[_Placed]) -> dict[Path, Record]:
    """The records of a machine by their place: those that are here, and those of the bundles before.

    Raises:
        BenchbookError: One that is here cannot be read.
    """
    places = sorted((project.records / machine).glob("*/*.json"))
    here = {place: load_record(place, project.relative(place)) for place in places}
    come = {
        place: record
        for one in before
        if one.machine.name == machine
        for place, record in one.records.items()
    }
    return {place: record for place, record in (here | come).items() if record is not None}


def _short(value: Any) -> str:
    """A value of a description, as far as a line has room for it."""
    text = json.dumps(value, ensure_ascii=False)
    return text if len(text) <= LONGEST_VALUE else f"{text[:LONGEST_VALUE]}…"


def _repeated(
    bundle: dict[str, Any], path: str, seen: dict[tuple[str, str], tuple[str, Any]]
) -> list[Problem]:
    """Records that another of the bundles holds otherwise: which of the two is meant, nobody can tell.

    Those that it holds alike are taken out: two that went on with one campaign hold what that had.
    """
    problems, own = [], []
    for table in bundle["records"]:
        name = table["machine"], table["script"]
        other, known = seen.setdefault(name, (path, table))
        if known is table:
            own.append(table)
        elif not is_same(known, table):
            what = f"it holds a record of {table['script']} on {table['machine']}, and so does {other}"
            problems.append(Problem(path, 1, what, "import one of the two"))
    bundle["records"] = own
    return problems


def _read_bundle(path: Path) -> dict[str, Any]:
    """The content of a bundle, gzipped or not: `machine`, `records`, the `digest` of both, and `traces`.

    The traces are bytes, by their digest, which the records name.

    Raises:
        BenchbookError: It is not one, or damaged, or larger than any honest one.
    """
    fix = "transfer it again, as the file that `record --bundle` wrote"
    shown = str(path)
    try:
        raw = read_packed(path, LARGEST_BUNDLE)
        text = raw.decode("utf-8")
    except (OSError, EOFError, zlib.error, UnicodeDecodeError) as error:
        raise BenchbookError(Problem(shown, 1, f"cannot be read ({error})", fix)) from error
    if len(raw) > LARGEST_BUNDLE:
        what = f"is larger than {LARGEST_BUNDLE >> 20} MiB"
        raise BenchbookError(Problem(shown, 1, what, "bundle fewer scripts at a time"))
    if count_marks(raw) > MOST_MARKS:
        what = f"holds more than {MOST_MARKS} values"
        raise BenchbookError(Problem(shown, 1, what, "bundle fewer scripts at a time"))
    bundle, problems = parse_json(text, shown)
    if problems:
        raise BenchbookError(*problems)
    keys = {"schema", "digest", "machine", "records"}
    shape = isinstance(bundle, dict) and set(bundle) - {"traces"} == keys
    if not shape or bundle["schema"] != 1 or not isinstance(bundle["records"], list):
        fix = "pass the file that `record --bundle` wrote"
        raise BenchbookError(Problem(shown, 1, "is not a bundle of records", fix))
    try:
        digest = bundle_digest(bundle["machine"], bundle["records"])
    except (ValueError, RecursionError) as error:
        raise BenchbookError(Problem(shown, 1, f"is not a bundle of records ({error})", fix)) from error
    if bundle["digest"] != digest:
        what = "was changed since it was written: its digest is of other content"
        raise BenchbookError(Problem(shown, 1, what, fix))
    return dict(bundle) | {"traces": _traces_in(bundle.get("traces", {}), shown)}


def _traces_in(traces: Any, path: str) -> dict[str, bytes]:
    """The traces of a bundle, by their digest.

    Raises:
        BenchbookError: They are not files in base64.
    """
    try:
        return {name: base64.b64decode(text, validate=True) for name, text in traces.items()}
    except (AttributeError, TypeError, ValueError) as error:
        fix = "pass the file that `record --bundle` wrote"
        raise BenchbookError(
            Problem(path, 1, f"its traces are not files in base64 ({error})", fix)
        ) from error


def _trace_problems(bundle: Mapping[str, Any], path: str) -> Iterator[Problem]:
    """Where the traces of a bundle are not those that its records name, or cannot be published."""
    fix = "pass the file that `record --bundle` wrote"
    strange = dict.fromkeys(bundle["traces"])
    held = {digest: TraceFile(packed) for digest, packed in bundle["traces"].items()}
    for table in bundle["records"]:
        for variant, name, entry in named_traces(table):
            strange.pop(entry["sha256"], None)
            if (file := held.get(entry["sha256"])) is None:
                what = f"it lacks the trace {name} of variant {variant} of {table['script']}"
                yield Problem(path, 1, what, fix)
                continue
            yield from trace_problems(file, table, variant, name, path)
    if strange:
        what = f"it holds {len(strange)} trace(s) that none of its records names"
        yield Problem(path, 1, what, fix)


def _repacked(
    project: Project, bundle: Mapping[str, Any], path: str, before: Sequence[_Placed]
) -> Iterator[Problem]:
    """The traces of a bundle that are those of another machine: one that is here, or came in before it."""
    files = list(committed_traces(project)) if bundle["traces"] else []
    files += [(one.machine.name, one.path, packed) for one in before for packed in one.traces.values()]
    files += [(bundle["machine"]["name"], path, packed) for packed in bundle["traces"].values()]
    yield from (problem for problem in repacked_problems(files) if problem.path == path)


def _misshapen(project: Project, machine: Any, records: list[Any], path: str) -> list[Problem]:
    """What is wrong with the shape of a bundle; nothing else of it is looked at then."""
    problems = machine_problems(machine, path)
    if not records:
        problems.append(Problem(path, 1, "it holds no records", "bundle what was recorded"))
    if len(records) > (most := len(project.scripts())):
        what = f"it holds {len(records)} records, and this checkout has {most} scripts"
        return [*problems, Problem(path, 1, what, "check out the commit it was recorded from")]
    for table in records:
        problems += record_problems(table, path)
    return problems


def _refusals(
    project: Project,
    bundle: Mapping[str, Any],
    path: str,
    reviewed: bool,
    repository: Path,
    before: Sequence[_Placed],
) -> Iterator[Problem]:
    """What speaks against a bundle of the right shape; `before` are those that come in before it."""
    machine, records = bundle["machine"], bundle["records"]
    yield from machine_origin_problems(project, machine, path, reviewed)
    yield from model_problems(machine, path)
    scripts = project.scripts()
    for reference, times in Counter(table["script"] for table in records).items():
        if times > 1:
            what = f"it holds {times} records of {reference}"
            yield Problem(path, 1, what, "pass the file that `record --bundle` wrote")
    references = {table["script"] for table in records} & scripts.keys()
    read = {one: read_script(scripts[one], project.root) for one in sorted(references)}
    known = _samples_known(project, read, repository, before)
    for table in records:
        reference = table["script"]
        if table["machine"] != machine["name"]:
            what = f"{reference} was recorded on {table['machine']}, not on {machine['name']}"
            yield Problem(path, 1, what, "bundle the records of one machine")
        if reference not in scripts:
            fix = "check out the commit it was recorded from"
            yield Problem(path, 1, f"{reference} is not a script of this checkout", fix)
            continue
        script = read[reference]
        if mixed := quotation_problems(table, machine, script, path):
            yield from mixed
            continue
        yield from record_origin_problems(project, script, machine, table, path)
        yield from commit_problems(repository, table, path, reviewed)
        yield from recorded_code_problems(repository, table, _not_here(project, table), path)
        yield from plausibility_problems(table, machine, script, path)
        yield from entry_problems(table, script, path)
        elsewhere = _records_elsewhere(project, table["machine"], reference, before)
        tables = [record_table(record) for record in elsewhere]
        yield from copy_problems(table, known, path, script=script, elsewhere=tables)
        known |= known_samples(table, script)
        yield from kind_problems(table, tables, path)
        yield from _speed_problems(project, script, machine, table, elsewhere, before, path)
    sizes: dict[str, int] = {}
    for table in records:
        add_sizes(sizes, table)
    yield from guide_problems(sizes, machine["name"], path)


def _not_here(project: Project, table: Mapping[str, Any]) -> list[str]:
    """The measured variants of a record that are not here as they are."""
    place = project.record_path(table["machine"], table["script"])
    here = load_record(place, project.relative(place))
    known = {} if here is None else here.variants
    variants = record_from(table).variants.items()
    return [name for name, variant in variants if not is_same(known.get(name), variant)]


def _speed_problems(
    project: Project,
    script: Script,
    machine: Mapping[str, Any],
    table: Mapping[str, Any],
    elsewhere: Sequence[Record],
    before: Sequence[_Placed],
    path: str,
) -> Iterator[Problem]:
    """What no machine can do so much faster than the reference machine did it."""
    name = project.config.reference_for(script.guide)
    reference = next((record for record in elsewhere if record.machine == name), None)
    described = _description(project, name, before) if reference is not None else None
    if reference is not None and described is not None:
        yield from speed_problems(table, machine, record_table(reference), described, script, path)


def _records_elsewhere(
    project: Project, machine: str, script: str, before: Sequence[_Placed]
) -> list[Record]:
    """The records of a script on the other machines: those that are here, and those of the bundles before."""
    places = [project.record_path(name, script) for name in project.machines]
    here = {place: load_record(place, project.relative(place)) for place in places}
    come = {place: record for one in before for place, record in one.records.items()}
    found = (record for record in (here | come).values() if record is not None)
    return [record for record in found if record.machine != machine and record.script == script]


def _samples_known(
    project: Project, scripts: Mapping[str, Script], repository: Path, before: Sequence[_Placed]
) -> Known:
    """Whose the times and the memory of all records are: those that are here or were, and of bundles before.

    Of a script that is not among `scripts` no metrics are known: they are compared with nothing.
    """
    machines = dict.fromkeys((*project.machines, *(one.machine.name for one in before)))
    records = [one for machine in machines for one in _records_of(project, machine, before).values()]
    standing = {name for record in records if record.script in scripts for name in record.campaigns}
    found = past_samples(project, repository, "HEAD", scripts, standing)
    for record in records:
        found |= known_samples(record_table(record), scripts.get(record.script))
    return found


def _merge(old: Record | None, new: Record) -> Record:
    """`new` laid over `old`: variants it does not hold stay, with their campaigns and the history.

    So does what both hold alike, as it is written in `old`.
    """
    if old is None:
        return replace(new, campaigns=campaigns_of(new.variants, new.campaigns))
    variants = _over(old.variants, new.variants)
    campaigns = campaigns_of(variants, _over(old.campaigns, new.campaigns))
    # A campaign that was stopped wrote a line, and another of the same name once it had gone on. Of campaigns
    # that nothing in the bundle is of, or whose lines it lacks or has alike, what is here stays.
    renewed = {variant.campaign for variant in new.variants.values()} & {
        line.campaign for line in new.history if not has_same(old.history, line)
    }
    lines = {line.campaign: line for line in old.history}
    # A line that takes the place of another stands where that stood.
    lines |= {
        line.campaign: line for line in new.history if line.campaign in renewed or line.campaign not in lines
    }
    history = tuple(lines.values())[-MOST_CAMPAIGNS:]
    return replace(new, campaigns=campaigns, variants=variants, history=history)


def _over(old: Mapping[str, T], new: Mapping[str, T]) -> dict[str, T]:
    """`new` laid over `old`, of which stays what both hold alike."""
    return {**old, **{name: one for name, one in new.items() if not is_same(old.get(name), one)}}
