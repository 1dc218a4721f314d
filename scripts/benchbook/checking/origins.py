"""Judge where records from outside come from: whose machine, which hardware, which code and libraries."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from packaging.specifiers import SpecifierSet

from benchbook.checking.plausibility import ROUNDING_SECONDS, cell_seconds, seconds_of
from benchbook.content.formats import MOMENT, from_table, is_same
from benchbook.content.machines import (
    MachineDescription,
    description_here,
    differing_key,
    machine_table,
    unreadable_description,
)
from benchbook.content.positions import json_line
from benchbook.content.problems import BenchbookError, Problem
from benchbook.content.project import Project
from benchbook.content.records import (
    CLOCK_SKEW,
    OWNER_MARK,
    Publication,
    load_record,
    record_from,
)
from benchbook.content.revisions import git_answer, has_whole_history, moment_of
from benchbook.content.script import Script, machine_kinds, parse_script
from benchbook.content.validation import RECORD_AGAIN
from benchbook.machines.accelerators import VENDORS, model_words
from benchbook.machines.description import MAINTAINERS, gigabytes, named, slug
from benchbook.machines.gpus import Sheet, known_gpus, sheet_of
from benchbook.query.freshness import input_digests, is_among, judge_record, too_few_runs

# What a person may have worded better; an import leaves it as it is.
WORDING = ("title", "short")
UNDER_A_NAME = "record with `--recorded-by` and your name"
REVIEWED = "from a commit that was reviewed (`--at`, with `--machine`)"
WRITTEN = "bundle what `record --bundle` wrote"
# Who measures, less the accents: what a page shows of a stranger has no letters that look like others.
OWNER = re.compile(r"[A-Za-z0-9](?:[A-Za-z0-9 ._'-]{0,58}[A-Za-z0-9.])?")
# Letters and digits that look like others, and what they look like.
ALIKE = str.maketrans(
    {
        like: letter
        for letter, alike in {
            "a": "4\u0430\u0251\u03b1",
            "c": "\u0441",
            "e": "3\u0435\u03b5",
            "i": "1l|!\u0131\u0456\u03b9\u0269",
            "k": "\u043a\u03ba",
            "m": "\u043c",
            "n": "\u043f\u03b7",
            "o": "0\u043e\u03bf",
            "p": "\u0440\u03c1",
            "r": "\u0433",
            "s": "5\u0455",
            "t": "\u0442\u03c4",
            "v": "\u03bd",
        }.items()
        for like in alike
    }
)
# What the recorder calls a processor, behind which a person may say which of them it is; any other name that
# begins with `cpu-` says nothing of its size.
SIZED_CPU = re.compile(r"cpu-\d+core(-\d+gb)?(?=-|$)")


def machine_origin_problems(
    project: Project,
    machine: Mapping[str, Any],
    path: str,
    reviewed: bool = False,
    is_here: bool = False,
) -> Iterator[Problem]:
    """What is wrong with a well-formed description that comes from outside.

    Parameters:
        project: The checkout, whose description of a machine of the same name it must agree with.
        machine: The description.
        path: The file, for messages.
        reviewed: Whether it comes from a commit that was reviewed, as what the maintainers measured does.
        is_here: Whether it is that of the checkout: one that names nobody is the maintainers' own there, and
            a person has worded it.
    """
    name, owner, kind = machine["name"], machine["owner"], machine["kind"]
    accelerator = machine["accelerator"]
    known = None if is_here else description_here(project, name)
    is_lent = OWNER_MARK in name
    if (kind == "cpu") != (accelerator is None):
        what = (
            f"{name} is of the kind {kind} and describes {'no' if accelerator is None else 'an'} accelerator"
        )
        yield Problem(path, 1, what, WRITTEN)
        return
    if accelerator is not None and accelerator["vendor"] not in {VENDORS[kind], None}:
        what = f"{name} is of the kind {kind}, which {accelerator['vendor']} does not make"
        yield Problem(path, 1, what, WRITTEN)
    sheet = sheet_of(machine)
    if sheet is not None and int(gigabytes(accelerator["memory_bytes"]) or 0) > sheet.memory_gb:
        what = (
            f"{name} has devices of {gigabytes(accelerator['memory_bytes'])} GB, "
            f"more than the {sheet.memory_gb} of {sheet.model}'s data sheet ({sheet.source})"
        )
        yield Problem(path, 1, what, "correct the description, or bring the data sheet up to date")
    if machine["published"]:
        yield from _quoted_words(machine, path)
    else:
        if machine["cpu"]["cores"] is None:
            yield Problem(path, 1, f"{name} has no number of cores, and every system tells it", WRITTEN)
        _, _, suffix = name.partition(OWNER_MARK)
        if suffix != slug(owner or ""):
            what = f"{name} belongs to {owner or 'the maintainers'}, and its name says otherwise"
            yield Problem(path, 1, what, f"{UNDER_A_NAME}, which becomes its ending")
        yield from _posing(project, machine, path, reviewed or (is_here and not is_lent))
        if is_here and not is_lent and owner is None and name not in project.config.maintained:
            what = f"{name} names nobody who measured, and pyproject.toml names no such machine"
            fix = f"{UNDER_A_NAME}; the maintainers add theirs to `machines` of [tool.benchbook]"
            yield Problem(path, 1, what, fix)
        if known is None:
            yield from _misnamed(machine, sheet, path)
        # What comes from outside is worded anew.
        if is_here:
            yield from strange_words(machine, path)
    differing = differing_key(known, machine) if known else None
    if differing:
        what = f"{name} is here already and is another machine (its {differing} differs)"
        fix = f"{UNDER_A_NAME}, so that two owners of one model do not collide"
        yield Problem(path, 1, what, fix)


def _posing(project: Project, machine: Mapping[str, Any], path: str, reviewed: bool) -> Iterator[Problem]:
    """A machine that passes for one of the maintainers', whose records a reviewed commit alone yields."""
    name, owner = machine["name"], machine["owner"]
    if name == project.config.reference_machine and not reviewed:
        what = f"{name} is the reference machine"
        yield Problem(path, 1, what, f"record on it in a checkout, or by the workflow, {REVIEWED}")
    elif not slug(owner or "") and not reviewed:
        what = f"{name} is described as a machine of the maintainers"
        fix = f"{UNDER_A_NAME}; the maintainers' own comes {REVIEWED} alone"
        yield Problem(path, 1, what, fix)
    elif owner is not None and _is_maintainers(owner):
        what = f"{name} belongs to {owner}, which is what the maintainers are called"
        yield Problem(path, 1, what, UNDER_A_NAME)
    elif owner is not None and not OWNER.fullmatch(_without_accents(owner)):
        what = f"{name} belongs to {owner}, which is not a name in the letters A to Z"
        yield Problem(path, 1, what, "record with `--recorded-by` and your name in these, as on GitHub")


def _misnamed(machine: Mapping[str, Any], sheet: Sheet | None, path: str) -> Iterator[Problem]:
    """A name that says of the hardware what the description does not: of a vendor, a model, a size."""
    base = machine["name"].partition(OWNER_MARK)[0]
    follows = named(from_table(MachineDescription, machine)).name.partition(OWNER_MARK)[0]
    if base == follows:
        return
    makers = {slug(vendor) for vendor in VENDORS.values()}
    said = sheet_of({"accelerator": {"name": base.replace("-", " ")}})
    is_cpu, sized = machine["accelerator"] is None, SIZED_CPU.match(base)
    if (
        # A person may call a processor of the maintainers otherwise.
        (is_cpu != base.startswith("cpu-") and (not is_cpu or OWNER_MARK in machine["name"]))
        or (sized is not None and (sized[0] == base or not f"{follows}-".startswith(f"{sized[0]}-")))
        or base.partition("-")[0] in makers
        or (said is not None and said != sheet)
    ):
        what = f"{machine['name']} is called so, and what it describes is called {follows}"
        yield Problem(path, 1, what, "record without `--machine`, which names a machine by what it is")


def model_problems(machine: Mapping[str, Any], path: str) -> Iterator[Problem]:
    """A GPU that has the name of a model, or one that is read as it, and not what is known of that model.

    Parameters:
        machine: A description of the right shape that comes from outside.
        path: The file, for messages.
    """
    accelerator, name, sheet = machine["accelerator"], machine["name"], sheet_of(machine)
    if accelerator is None or machine["published"]:
        return
    told = accelerator["compute_capability"]
    if told is not None and not _is_capability(told, machine["kind"]):
        yield Problem(path, 1, f"{name} has the compute capability {told}, as no GPU has", WRITTEN)
    model = " ".join(model_words(accelerator["name"]))
    rows = [gpu for gpu in known_gpus() if gpu.model.casefold() == model.casefold()]
    rows = rows or [gpu for gpu in known_gpus() if sheet is not None and gpu.model == sheet.model]
    if not rows:
        for gpu in known_gpus():
            if _skeleton(gpu.model) == _skeleton(model):
                what = f"{name} has a {accelerator['name']}, which is not {gpu.name} and is read as it"
                yield Problem(path, 1, what, WRITTEN)
                return
        return
    gpu = rows[0]
    maker = gpu.name.partition(" ")[0]
    # GeForce, Quadro, Jetson
    maker = maker if maker in VENDORS.values() else VENDORS["cuda"]
    if accelerator["vendor"] not in {maker, None}:
        what = f"{name} has a {gpu.model} of {accelerator['vendor']}, which {maker} makes ({gpu.source})"
        yield Problem(path, 1, what, WRITTEN)
    most = max((row.memory_gb or 0 for row in rows), default=0)
    size = int(gigabytes(accelerator["memory_bytes"]) or 0)
    if sheet is None and 0 < most < size:
        what = f"{name} has devices of {size} GB, more than the {most} of {gpu.name} ({gpu.source})"
        yield Problem(path, 1, what, WRITTEN)
    if sheet is not None and not size:
        yield Problem(path, 1, f"{name} has a {gpu.model}, and does not say how much memory", WRITTEN)
    if gpu.capability is not None and told not in {None, "{}.{}".format(*gpu.capability)}:
        known = "{}.{}".format(*gpu.capability)
        what = f"{name} has the compute capability {told}, and {gpu.name} has {known}"
        yield Problem(path, 1, what, WRITTEN)


def _is_capability(text: str, kind: str) -> bool:
    """Whether a GPU of these years may have this compute capability: NVIDIA's less than twice the newest."""
    if kind != "cuda":
        return kind != "rocm" or re.fullmatch("gfx[0-9a-f]{3,8}", text) is not None
    newest = max(gpu.capability[0] for gpu in known_gpus() if gpu.capability is not None)
    return re.fullmatch(r"[1-9][0-9]?\.[0-9]", text) is not None and float(text) < 2 * newest


def strange_words(machine: Mapping[str, Any], path: str) -> Iterator[Problem]:
    """Words that call a machine another model, give it another size, or falsely call it the maintainers'.

    Parameters:
        machine: A description of the right shape, in the words in which it is shown.
        path: The file, for messages.
    """
    sheet = sheet_of(machine)
    for key in WORDING:
        said = sheet_of({"accelerator": {"name": machine[key]}})
        if said is not None and said != sheet:
            what = f"{machine['name']} is called {machine[key]!r}, and does not describe a {said.model}"
            yield Problem(path, 1, what, "call it by what was measured")
        elif made_up := _numbers_in(machine[key]) - _numbers_of(machine):
            what = f"{machine['name']} is called {machine[key]!r}, and nothing of it is {min(made_up)}"
            yield Problem(path, 1, what, "call it by what was measured")
        if _is_maintainers(machine[key]) and (machine["owner"] is not None or machine["published"]):
            what = f"{machine['name']} is called {machine[key]!r}, and is not the maintainers'"
            yield Problem(path, 1, what, "call it by what was measured")


# A number in the words for a machine, with what it counts where that is memory or cores.
_COUNTED = re.compile(r"(\d+(?:[.,]\d+)*)(?:[\s-]*([kmgt]i?b|core)s?(?![a-z]))?")


def _numbers_in(text: str) -> set[str]:
    return {" ".join(filter(None, found)) for found in _COUNTED.findall(_folded(text))}


def _numbers_of(machine: Mapping[str, Any]) -> set[str]:
    """The numbers in the names of a machine and of its parts, and those that follow from what it is."""
    made = named(from_table(MachineDescription, machine))
    accelerator = machine["accelerator"] or {}
    parts = (accelerator.get("name"), machine["cpu"]["model"], machine["owner"])
    texts = [machine["name"], made.name, made.title, *filter(None, parts)]
    return {number for text in texts for number in _numbers_in(text)}


def _folded(text: str) -> str:
    return unicodedata.normalize("NFKC", text).casefold()


def _quoted_words(machine: Mapping[str, Any], path: str) -> Iterator[Problem]:
    """A machine of quoted figures that is called as another model, or as the maintainers'."""
    yield from strange_words(machine, path)
    if machine["owner"] is not None and _is_maintainers(machine["owner"]):
        what = f"{machine['name']} is quoted, and says that the maintainers measured it"
        yield Problem(path, 1, what, "name who is said to have measured it")


def worded(
    project: Project, machine: MachineDescription, beside: Sequence[MachineDescription] = ()
) -> MachineDescription:
    """A measured machine with the title and the short form that follow from what it is.

    Where another machine here, or one of those that come in beside it, is called so, its own name stands
    behind it.
    """
    if machine.published:
        return machine
    made = named(machine)
    known = _beside(project, machine, beside)

    def called(key: str, said: str) -> str:
        taken = {_seen(str(other.get(key))) for other in known.values()}
        return f"{said} ({machine.name})" if _seen(said) in taken else said

    return replace(machine, title=called("title", made.title), short=called("short", made.short))


def quoted_alike_problems(
    project: Project, machine: MachineDescription, beside: Sequence[MachineDescription], path: str
) -> Iterator[Problem]:
    """Where a machine of quoted figures, whose words are its author's, is called as another is."""
    if machine.published:
        for name, other in _beside(project, machine, beside).items():
            for key in WORDING:
                words = getattr(machine, key)
                if _seen(words) == _seen(str(other.get(key))):
                    yield _alike(path, machine.name, key, words, name)


def _beside(
    project: Project, machine: MachineDescription, beside: Sequence[MachineDescription]
) -> dict[str, Mapping[str, Any]]:
    """The other machines that are here, or come in beside it, by name."""
    known: dict[str, Mapping[str, Any]] = {one.name: machine_table(one) for one in beside}
    # What is here keeps its words, whoever brings it again.
    known |= {name: table for name in project.machines if (table := description_here(project, name))}
    return {name: table for name, table in known.items() if name != machine.name}


def alike_problems(machines: Mapping[str, Mapping[str, Any]]) -> Iterator[Problem]:
    """Machines that a reader cannot tell from another: of two, the one that is lent, or has the later name.

    Parameters:
        machines: Every description, by its file.
    """
    for key in WORDING:
        seen: dict[str, str] = {}
        for path, machine in sorted(
            machines.items(), key=lambda item: (OWNER_MARK in item[1]["name"], item[1]["name"])
        ):
            other = seen.setdefault(_seen(machine[key]), machine["name"])
            if other != machine["name"]:
                yield _alike(path, machine["name"], key, machine[key], other)


def _alike(path: str, name: str, key: str, words: str, other: str) -> Problem:
    """That a machine is called as another is."""
    what = f"{name} has the {key} {words!r}, as {other} has"
    return Problem(path, 1, what, "call it so that a reader can tell the two apart")


def _is_maintainers(name: str) -> bool:
    """Whether whoever is called `name` passes for the maintainers of the handbook."""
    return _skeleton(MAINTAINERS.removesuffix("s")) in _skeleton(name)


def _skeleton(text: str) -> str:
    """What a reader sees in a text: no accents, spaces and case, and one spelling of what looks alike."""
    return re.sub(r"[^a-z0-9]", "", _seen(text)).replace("rn", "m").replace("vv", "w")


def _seen(text: str) -> str:
    """As `_skeleton`, with the letters of other scripts."""
    plain = _without_accents(unicodedata.normalize("NFKC", text)).casefold().translate(ALIKE)
    return re.sub(r"[\W_]", "", plain).replace("rn", "m").replace("vv", "w")


def _without_accents(text: str) -> str:
    return "".join(one for one in unicodedata.normalize("NFD", text) if not unicodedata.combining(one))


def changed_fields(
    project: Project, machine: MachineDescription, known: Mapping[str, Any] | None
) -> list[tuple[str, Any, Any]]:
    """What of a description that is `known` would be another: the field, what it holds, and what it would.

    Raises:
        BenchbookError: The known one cannot be read.
    """
    if known is None:
        return []
    try:
        here = _fields(machine_table(from_table(MachineDescription, known)))
    except (TypeError, ValueError, AttributeError) as error:
        raise BenchbookError(unreadable_description(project, machine.name, error)) from error
    there = _fields(machine_table(machine))
    # A key with nothing in it says no more than none.
    pairs = ((key, here.get(key), there.get(key)) for key in {**here, **there} if key not in WORDING)
    return [(name, old, new) for name, old, new in pairs if not is_same(old, new)]


def _fields(table: Mapping[str, Any], above: str = "") -> dict[str, Any]:
    """Every value in a description, by the keys that lead to it."""
    found: dict[str, Any] = {}
    for key, value in table.items():
        found |= _fields(value, f"{above}{key}.") if isinstance(value, Mapping) else {f"{above}{key}": value}
    return found


def record_origin_problems(
    project: Project, script: Script, machine: Mapping[str, Any], table: Mapping[str, Any], path: str
) -> Iterator[Problem]:
    """What shows that a well-formed record does not come from `script` as it stands here, run as it asks."""
    known = {v.name: v for v in script.variants(machine_kinds(machine["kind"], machine["name"]))}
    inputs = input_digests(script, project.snippets / script.guide)
    place = project.record_path(machine["name"], script.reference)
    here = load_record(place, project.relative(place))
    record = record_from(table)
    asked: set[str] = set()
    for name, variant in record.variants.items():
        # What is quoted comes from no code, and once.
        if isinstance(record.campaigns[variant.campaign], Publication):
            continue
        # Of a variant that is no longer measured, a bundle brings back what it found in its checkout.
        if here is not None and is_same(here.variants.get(name), variant):
            continue
        asked.add(variant.campaign)
        title = f"{script.reference}, variant {name}"
        if name not in known:
            yield Problem(path, 1, f"{title}: the script has no such variant", RECORD_AGAIN)
            continue
        verdict = judge_record(script, known[name], record, inputs)
        if verdict.state == "stale":
            what = f"{title}: was recorded from other code, values or libraries ({verdict.reason})"
            yield Problem(path, 1, what, f"{RECORD_AGAIN} from this commit")
        # The marks of a region are comments, which a digest leaves out.
        if strange := sorted(set(variant.regions) - set(script.regions)):
            what = f"{title}: it reached {', '.join(strange)}, and the script has no such region"
            yield Problem(path, 1, what, f"{RECORD_AGAIN} from this commit")
        lasted = seconds_of(table["campaigns"][variant.campaign])
        if variant.outcome == "timed out" and lasted + ROUNDING_SECONDS < known[name].timeout:
            what = (
                f"{title}: timed out after {known[name].timeout:g} s, and the session lasted {lasted:.0f} s"
            )
            yield Problem(path, 1, what, RECORD_AGAIN)
        longest = max((cell_seconds(run) for run in table["variants"][name]["runs"]), default=0.0)
        if longest > known[name].timeout + ROUNDING_SECONDS:
            what = f"{title}: a run took {longest:.0f} s, and is ended after {known[name].timeout:g} s"
            yield Problem(path, 1, what, RECORD_AGAIN)
        if (few := too_few_runs(variant, known[name].repeats)) is not None:
            yield Problem(path, 1, f"{title}: {few}", RECORD_AGAIN)
    kept = set(table["campaigns"]) - asked
    yield from measurer_problems(machine, table, path, kept)
    yield from python_problems(script, table, asked, path)


def python_problems(
    script: Script, table: Mapping[str, Any], campaigns: Collection[str], path: str
) -> Iterator[Problem]:
    """Sessions that ran on a Python which the script does not admit.

    Parameters:
        script: As it stands.
        table: A record of it, of the right shape.
        campaigns: Which of its sessions: none that are quoted.
        path: The file, for messages.
    """
    for name in sorted(campaigns):
        campaign = table["campaigns"][name]
        python = campaign["packages"].get("python")
        if python is None or not is_among(python, SpecifierSet(script.metadata.requires_python)):
            what = f"campaign {name} ran on Python {python}, where {script.reference} asks for "
            what += script.metadata.requires_python
            yield Problem(path, 1, what, "record with a Python that the script admits")


def measurer_problems(
    machine: Mapping[str, Any],
    table: Mapping[str, Any],
    path: str,
    kept: Collection[str] = (),
) -> Iterator[Problem]:
    """Sessions that someone else measured than whose machine it is, or is said to be.

    Parameters:
        machine: The description, of the right shape.
        table: A record of it, likewise.
        path: The file, for messages.
        kept: Campaigns that are here already, as they are.
    """
    measurer = machine["owner"] or MAINTAINERS
    for name, campaign in sorted(table["campaigns"].items()):
        by = campaign["recorded_by"]
        if "source" in campaign:
            if _is_maintainers(by):
                what = f"campaign {name} is quoted, and says that the maintainers measured it"
                yield Problem(path, 1, what, "name who is said to have measured it")
        elif by != measurer and name not in kept:
            what = f"campaign {name} was recorded by {by}, on a machine of {measurer}"
            yield Problem(path, 1, what, "record under one name")


def commit_problems(
    repository: Path, record: Mapping[str, Any], path: str, reviewed: bool = False
) -> Iterator[Problem]:
    """Sessions that began before the commit they name was made, or name one that this history does not hold.

    Parameters:
        repository: Where the history is; without one, nothing is known.
        record: A record of the right shape.
        path: The file, for messages.
        reviewed: Whether they come from a commit that was reviewed, where older sessions are brought too.
    """
    used = {variant["campaign"] for variant in record["variants"].values()}
    commits = {name: record["campaigns"][name].get("commit") for name in sorted(used)}
    made = _made(repository, {commit for commit in commits.values() if commit is not None})
    for name, commit in commits.items():
        if commit is None or made is None:
            continue
        if commit not in made:
            if not reviewed:
                what = f"campaign {name} was recorded from commit {commit[:12]}, which is not in this history"
                yield Problem(path, 1, what, "fetch that commit, or record from one that is here")
            continue
        started = datetime.strptime(record["campaigns"][name]["started"], MOMENT).replace(tzinfo=UTC)
        if started < made[commit] - CLOCK_SKEW:
            what = f"campaign {name} started at {started:{MOMENT}}, before its commit {commit[:12]} was made"
            yield Problem(path, 1, what, RECORD_AGAIN)


def recorded_code_problems(
    repository: Path,
    record: Mapping[str, Any],
    variants: Collection[str],
    path: str,
    text: str = "",
    may_be_renamed: bool = False,
) -> Iterator[Problem]:
    """Variants whose code is not that of their script in the commit from which they were recorded.

    Parameters:
        repository: Where the history is; without one, nothing is known.
        record: A record of the right shape.
        variants: Which of its variants are looked at.
        path: The file, for messages.
        text: Its content, to find lines in.
        may_be_renamed: Whether the script may have had another name then.
    """
    by_commit: dict[str, list[str]] = {}
    for name in variants:
        campaign = record["campaigns"][record["variants"][name]["campaign"]]
        if campaign.get("commit") is not None and not campaign["modified"]:
            by_commit.setdefault(campaign["commit"], []).append(name)
    made = (_made(repository, by_commit) if by_commit else None) or {}
    for commit in by_commit.keys() & made.keys():
        digest = _digest_at(repository, commit, record["script"])
        for name in by_commit[commit] if digest is not None else ():
            line = json_line(text, ("variants", name))
            if digest == "" and not may_be_renamed:
                what = (
                    f"variant {name} was recorded from commit {commit[:12]}, which has no {record['script']}"
                )
                yield Problem(path, line, what, RECORD_AGAIN)
            elif digest not in {"", record["variants"][name]["code"]}:
                what = f"variant {name} has other code than {record['script']} in commit {commit[:12]}, "
                yield Problem(path, line, f"{what}which it was recorded from", RECORD_AGAIN)


def _digest_at(repository: Path, commit: str, script: str) -> str | None:
    """The digest of a script's code in a commit: empty where it is not there, None where it is no script."""
    place = f"snippets/{script}"
    try:
        found = script_in(repository, f"{commit}:./{place}", script)
    except BenchbookError:
        return None
    return "" if found is None else found.code_digest


def script_in(repository: Path, blob: str, reference: str) -> Script | None:
    """The script that git has under a name, as `reference` names it; None where it has nothing of that name.

    Raises:
        BenchbookError: It is no script.
    """
    place = f"snippets/{reference}"
    source = git_answer(repository, "cat-file", "blob", blob)
    try:
        return None if source is None else parse_script(source.decode("utf-8"), place, reference)
    except UnicodeDecodeError as error:
        raise BenchbookError(Problem(place, 1, f"is not UTF-8 ({error})", "save it as UTF-8")) from error


def _made(repository: Path, commits: Iterable[str]) -> dict[str, datetime] | None:
    """When each of some commits was made, of those that are here; None where the history is not whole."""
    if not has_whole_history(repository):
        return None
    lines = "".join(f"{commit}\n" for commit in commits)
    asked = ("--no-walk", "--no-show-signature", "--ignore-missing", "--stdin", "--format=%H %ct")
    # Without one that is asked for, it would tell of the last.
    told = git_answer(repository, "log", *asked, send=lines.encode()) if lines else b""
    pairs = (line.split() for line in (told or b"").decode().splitlines())
    return {commit: moment for commit, seconds in pairs if (moment := moment_of(seconds)) is not None}
