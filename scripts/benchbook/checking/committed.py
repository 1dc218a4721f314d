"""Hold records to what `main` has of them: what was measured is measured again, and never edited."""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cached_property
from pathlib import Path
from typing import Any

from benchbook.checking.copies import Known, known_samples
from benchbook.checking.origins import WORDING, changed_fields, recorded_code_problems, script_in
from benchbook.checking.overlays import continues, session_differences
from benchbook.checking.past_records import past_samples
from benchbook.content.formats import from_table, has_same, is_same
from benchbook.content.machines import MachineDescription, differing_key
from benchbook.content.positions import json_line
from benchbook.content.problems import BenchbookError, Problem, few
from benchbook.content.project import Project
from benchbook.content.records import (
    MOST_CAMPAIGNS,
    Campaign,
    HistoryLine,
    is_published,
    measured_days,
)
from benchbook.content.revisions import git_answer, has_whole_history, listed_files
from benchbook.content.script import Script
from benchbook.content.traces import ENDING
from benchbook.content.validation import (
    RECORD_AGAIN,
    machine_problems,
    parse_json,
    read_json,
    record_problems,
)

RESTORE = "restore it from `main`; what is measured again is a campaign of its own"
# In full: a tag of a stranger's fork may be called `origin/main`.
_MAIN = ("refs/remotes/origin/main", "refs/heads/main")


@dataclass(frozen=True)
class Committed:
    """What lies below snippets/ in the commit where this branch left `main`, but for traces.

    Parameters:
        root: Of the checkout.
        commit: Its name.
        blobs: What git calls the content of each, by its path.
        gone: Whether one of the records is not there any more: it may have another name now.
    """

    root: Path
    commit: str
    blobs: Mapping[str, str]
    gone: bool

    def holds(self, path: str, text: str) -> bool:
        """Whether `main` has this content at a path."""
        blob = self.blobs.get(path)
        return blob is not None and blob == _blob_of(text.encode(), len(blob))

    def changed(self, folder: str) -> list[str]:
        """The files that `main` has below a folder, and that have another content here, or are gone."""
        return [path for path in self._changed if path.startswith(f"{folder}/")]

    def has_as_here(self, path: str) -> bool:
        """Whether `main` has a file at a path, with the content that it has here."""
        return path in self.blobs and path not in self._changed

    @cached_property
    def _changed(self) -> list[str]:
        return [path for path, blob in sorted(self.blobs.items()) if blob != self._here(path, len(blob))]

    def _here(self, path: str, length: int) -> str | None:
        """What git calls the content that a file has here; None where it is gone."""
        try:
            return _blob_of((self.root / path).read_bytes(), length)
        except OSError:
            return None

    def text(self, path: str) -> str:
        """What `main` has at a path; empty where it has nothing there."""
        blob = self.blobs.get(path)
        content = git_answer(self.root, "cat-file", "blob", blob) if blob is not None else None
        return (content or b"").decode("utf-8", "replace")

    def table(self, path: str) -> Any:
        """What `main` has at a path as JSON; None where it has nothing there, or no JSON."""
        return parse_json(self.text(path), path)[0] if path in self.blobs else None

    def record(self, path: str) -> Any:
        """The record that `main` has at a path; None where it has none there, or one of another form."""
        if path not in self._records:
            table = self.table(path)
            self._records[path] = None if record_problems(table, path) else table
        return self._records[path]

    @cached_property
    def _records(self) -> dict[str, Any]:
        """Those that were read."""
        return {}

    @cached_property
    def sessions(self) -> dict[tuple[str, str], str]:
        """The script of each measured campaign, by machine and name, of records that are gone or changed."""
        return {
            (record["machine"], name): record["script"]
            for path in self._changed
            if path.endswith(".json") and (record := self.record(path)) is not None
            for name, campaign in record["campaigns"].items()
            if "source" not in campaign
        }

    def script(self, script: Script) -> Script | None:
        """A script as `main` has it; None where it has none there, or one that is not read."""
        return self.script_at(script.path, script.reference)

    def script_at(self, path: str, reference: str) -> Script | None:
        """The script that `main` has at a path; None where it has none there, or one that is not read."""
        if (blob := self.blobs.get(path)) is None:
            return None
        try:
            return script_in(self.root, blob, reference)
        except BenchbookError:
            return None

    @cached_property
    def renamed(self) -> dict[str, str]:
        """What files are called on `main` that git takes for renamed, by their paths here."""
        asked = ("diff", "--find-renames=20%", "--diff-filter=R", "--name-status", "-z", self.commit)
        words = (git_answer(self.root, *asked) or b"").decode("utf-8", "replace").split("\0")
        # How alike they are, the old path and the new one, of each.
        return dict(zip(words[2::3], words[1::3], strict=False))

    def same_code(self, script: Script) -> Script | None:
        """The script as `main` has it; None where that is of other code, or not there."""
        found = self.script(script)
        # Both may have what was measured among their earlier checks.
        return found if found is not None and found.codes & script.codes else None


def committed_records(project: Project) -> Committed | None:
    """What `main` has of the records, and what they are of; None where git cannot tell.

    Raises:
        BenchbookError: It has more than any checkout here, not all of it is here, or this branch left it at
            several commits.
    """
    for name in (*_MAIN, "HEAD"):
        if (bases := git_answer(project.root, "merge-base", "--all", "HEAD", name)) is not None:
            break
    else:
        return None
    commit, *others = bases.decode().split()
    if others:
        # Of two that were merged into each other each has records that the other lacks.
        what = f"left `main` at {1 + len(others)} commits, and none of them has what each holds"
        short = name.removeprefix("refs/remotes/").removeprefix("refs/heads/")
        raise BenchbookError(Problem(".", 1, what, f"run git merge {short}"))
    files = listed_files(project.root, commit, (project.relative(project.snippets),))
    records = f"{project.relative(project.records)}/"
    named = {str(file.path): file.name for file in files}
    # A trace is named by its content, and held to the record that names it.
    blobs = {
        path: name for path, name in named.items() if not (path.startswith(records) and path.endswith(ENDING))
    }
    gone = not all((project.root / path).is_file() for path in blobs if path.startswith(records))
    return Committed(project.root, commit, blobs, gone)


def unrelated_main(project: Project) -> Iterator[Problem]:
    """That a `main` is here which this branch has no commit in common with: nothing can be held to it."""
    for name in _MAIN:
        known = git_answer(project.root, "rev-parse", "--verify", "--quiet", f"{name}^{{commit}}") is not None
        if known and git_answer(project.root, "merge-base", "HEAD", name) is None:
            short = name.removeprefix("refs/remotes/").removeprefix("refs/heads/")
            what = f"has no commit in common with {short}, and nothing here is held to what that has"
            fix = "begin a branch from it; of a shallow clone, `git fetch --unshallow` brings what is missing"
            yield Problem(".", 1, what, fix)


def edited_problems(
    project: Project, committed: Committed, table: Mapping[str, Any], path: Path, text: str
) -> Iterator[Problem]:
    """Where a record says something else of a campaign than `main` does, or has what its commit cannot yield.

    What is quoted may be corrected, but not when it was taken over: a blind prediction is older than that.

    Parameters:
        project: The checkout.
        committed: What `main` has.
        table: The record, of the right shape.
        path: Its file.
        text: Its content.
    """
    shown = project.relative(path)
    if committed.holds(shown, text):
        return
    before = _before(project, committed, table, shown)
    # Of what is no record there, or one of another form, nothing can be said.
    if before is None:
        return
    measured = {name: one for name, one in table["campaigns"].items() if "source" not in one}
    grown = {
        one["campaign"]
        for name, one in table["variants"].items()
        if before["variants"].get(name, {}).get("campaign") != one["campaign"]
    }
    for name in sorted(measured.keys() & before["campaigns"].keys()):
        line = json_line(text, ("campaigns", name))
        if "source" in before["campaigns"][name]:
            yield Problem(shown, line, f"campaign {name} is quoted on `main`", RESTORE)
            continue
        known, campaign = (from_table(Campaign, one["campaigns"][name]) for one in (before, table))
        odd, gone_on = session_differences(known, campaign)
        if odd:
            what = f"campaign {name} is of another session on `main` (its {', '.join(odd)} differs)"
            yield Problem(shown, line, what, RESTORE)
        elif gone_on and name not in grown:
            what = f"campaign {name} is otherwise on `main` (its {', '.join(gone_on)} differs), "
            yield Problem(shown, line, f"{what}and nothing more was measured in it", RESTORE)
    yield from _taken_over_problems(before, table, shown, text)
    if not is_published(table["machine"]):
        yield from _history_problems(before, table, grown, shown, text)
    for name in sorted(measured.keys() - before["campaigns"].keys()):
        if (whose := committed.sessions.get((table["machine"], name))) is not None:
            what = f"campaign {name} is of {whose} on `main`, and a session is of one script"
            yield Problem(shown, json_line(text, ("campaigns", name)), what, RESTORE)
    for name in sorted(_replaced(before, table).keys() & measured.keys()):
        if (why := _odd_commit(project.root, measured[name].get("commit"))) is not None:
            what = f"campaign {name} would replace what `main` has, and {why}"
            yield Problem(shown, json_line(text, ("campaigns", name)), what, RECORD_AGAIN)
    added = []
    for name, variant in table["variants"].items():
        known = before["variants"].get(name, {})
        if variant["campaign"] not in measured:
            continue
        if known.get("campaign") != variant["campaign"]:
            added.append(name)
            ended = before["campaigns"].get(known.get("campaign"), {}).get("finished", "")
            started = measured[variant["campaign"]]["started"]
            if started < ended:
                what = f"variant {name} was measured until {ended} on `main`, and campaign "
                what += f"{variant['campaign']}, which began at {started}, would take its place"
                yield Problem(shown, json_line(text, ("variants", name)), what, RESTORE)
        elif odd := sorted(
            key for key in known.keys() | variant.keys() if not is_same(known.get(key), variant.get(key))
        ):
            what = (
                f"variant {name} is otherwise on `main`, of the same campaign (its {', '.join(odd)} differs)"
            )
            yield Problem(shown, json_line(text, ("variants", name)), what, RESTORE)
    renamed = before.get("script", table["script"]) != table["script"]
    yield from recorded_code_problems(project.root, table, added, shown, text, may_be_renamed=renamed)


def _taken_over_problems(
    before: Mapping[str, Any], table: Mapping[str, Any], shown: str, text: str
) -> Iterator[Problem]:
    """Campaigns that say of quoted figures of `main` that they were taken over at another moment."""
    known: dict[str, str | None] = {}
    for name in before["variants"]:
        here, there = (
            side["campaigns"][side["variants"][name]["campaign"]] if name in side["variants"] else {}
            for side in (table, before)
        )
        if "source" in here and here.get("taken_over") != there.get("taken_over"):
            known.setdefault(table["variants"][name]["campaign"], there.get("taken_over"))
    for campaign, moment in known.items():
        what = f"campaign {campaign} has another `taken_over` than its figures on `main` ({moment or 'none'})"
        fix = f"set it to {moment}" if moment else "remove it: nobody noted it when the figures came"
        yield Problem(shown, json_line(text, ("campaigns", campaign)), what, fix)


def _before(project: Project, committed: Committed, table: Mapping[str, Any], shown: str) -> Any:
    """The record that `main` has for one at `shown`, empty where there is none; None where it is odd."""
    return committed.record(shown) if shown in committed.blobs else _renamed(project, committed, table)


def _replaced(before: Mapping[str, Any], table: Mapping[str, Any]) -> dict[str, list[str]]:
    """The variants of `before` that are of another campaign in `table`, by that."""
    replaced: dict[str, list[str]] = {}
    for name, variant in table["variants"].items():
        if name in before["variants"] and variant["campaign"] != before["variants"][name]["campaign"]:
            replaced.setdefault(variant["campaign"], []).append(name)
    return replaced


def _odd_commit(root: Path, commit: str | None) -> str | None:
    """Why nobody can see from which code a campaign was recorded; None where that can be, or is unknown."""
    if not has_whole_history(root):
        return None
    if commit is None:
        return "names no commit that it was recorded from"
    if git_answer(root, "merge-base", "--is-ancestor", commit, "HEAD") is None:
        return f"was recorded from commit {commit[:12]}, which is not in this history"
    return None


def replaced_records(project: Project, committed: Committed) -> Iterator[Problem]:
    """What new campaigns take the place of in `main`, a line for each, and what joins one of its own."""
    for path in sorted(project.records.glob("*/*/*.json")):
        shown = project.relative(path)
        if committed.has_as_here(shown):
            continue
        table, text, _ = read_json(path, shown)
        if record_problems(table, shown) or (before := _before(project, committed, table, shown)) is None:
            continue
        for campaign, names in _replaced(before, table).items():
            where = f"{table['script']} on {table['machine']}"
            what = f"replaces variant {few(names)} of {where}, which `main` has, by campaign {campaign}"
            fix = "say in the pull request who measured it again, and why"
            yield Problem(shown, json_line(text, ("campaigns", campaign)), what, fix)
        new = [
            name
            for name, variant in table["variants"].items()
            if name not in before["variants"] and variant["campaign"] not in before["campaigns"]
        ]
        if new and f"{project.relative(path.parents[1])}/machine.json" in committed.blobs:
            where = f"{table['script']} on {table['machine']}"
            what = f"adds variant {few(new)} of {where}, a machine that `main` has"
            fix = "say in the pull request who measured it, and when"
            yield Problem(shown, json_line(text, ("variants", new[0])), what, fix)
        standing = {variant["campaign"] for variant in table["variants"].values()}
        known = {*before["campaigns"], *(line["campaign"] for line in before["history"]), *standing}
        strange = [line["campaign"] for line in table["history"] if line["campaign"] not in known]
        if strange:
            what = f"adds campaign {few(strange)} to the history, of which nothing stands in the record"
            fix = "say in the pull request who measured it, and when"
            yield Problem(shown, json_line(text, ("history",)), what, fix)
        joining = [
            name
            for name, variant in table["variants"].items()
            if variant["campaign"] in before["campaigns"] and name not in before["variants"]
        ]
        if joining:
            what = f"adds variant {few(joining)} of {table['script']} on {table['machine']} to a campaign "
            fix = "say in the pull request who measured it, and when"
            yield Problem(shown, json_line(text, ("variants", joining[0])), f"{what}that `main` has", fix)
        for campaign in sorted(before["campaigns"].keys() & table["campaigns"].keys()):
            if odd := _gone_on_with(before, table, campaign):
                what = f"campaign {campaign} says otherwise of itself than on `main` ({', '.join(odd)})"
                fix = "say in the pull request who measured more in it, and when"
                yield Problem(shown, json_line(text, ("campaigns", campaign)), what, fix)
        if corrected := [name for name in before["variants"] if _is_corrected(name, before, table)]:
            where = f"{table['script']} on {table['machine']}"
            what = f"changes what is quoted of variant {few(corrected)} of {where}"
            fix = "say in the pull request where the source says so"
            yield Problem(shown, json_line(text, ("variants", corrected[0])), what, fix)


def _gone_on_with(before: Mapping[str, Any], table: Mapping[str, Any], name: str) -> list[str]:
    """What a measured campaign of `before` says otherwise of itself in `table`, but for its end."""
    known, campaign = (side["campaigns"][name] for side in (before, table))
    if "source" in known or "source" in campaign:
        return []
    gone_on = session_differences(*(from_table(Campaign, one) for one in (known, campaign)))[1]
    return [field for field in gone_on if field != "finished"]


def _is_corrected(name: str, before: Mapping[str, Any], table: Mapping[str, Any]) -> bool:
    """Whether a variant is quoted otherwise than in `before`, of a campaign of the same name."""
    there, here = before["variants"][name], table["variants"].get(name)
    if here is None or here["campaign"] != there["campaign"]:
        return False
    known, campaign = (side["campaigns"][there["campaign"]] for side in (before, table))
    return "source" in campaign and not (is_same(there, here) and is_same(known, campaign))


def _renamed(project: Project, committed: Committed, table: Mapping[str, Any]) -> Any:
    """The record that `main` has of this machine, and of a campaign or the code, under a name that is gone.

    Of several that share a campaign the one with the most of the same variants; else an empty one.
    """
    codes = {variant["code"] for variant in table["variants"].values()} - {None}
    found: dict[str, Any] = {"campaigns": {}, "variants": {}, "history": []}
    folder = project.relative(project.records / table["machine"])
    most = -1
    for path in committed.changed(folder) if committed.gone else ():
        if (project.root / path).is_file() or (before := committed.record(path)) is None:
            continue
        if table["campaigns"].keys() & before["campaigns"].keys():
            same = sum(is_same(one, table["variants"].get(name)) for name, one in before["variants"].items())
            if same > most:
                found, most = before, same
        elif most < 0 and codes & {variant["code"] for variant in before["variants"].values()}:
            found = before
    return found


def moved_from(project: Project, committed: Committed, table: Mapping[str, Any]) -> str | None:
    """The script of the record of `main`, which is gone, that a record has now; None where there is none."""
    before = _renamed(project, committed, table)
    return before.get("script") if before["campaigns"].keys() & table["campaigns"].keys() else None


def vanished_variants(
    project: Project, committed: Committed, scripts: Mapping[str, Script]
) -> tuple[list[Problem], list[Problem]]:
    """What records of a machine lack that `main` has: problems, and warnings.

    A problem is what the script measures still by the same code, a warning what it does not, and what the
    record of a script that is not there any more is called now.

    Parameters:
        project: The checkout.
        committed: What `main` has.
        scripts: Those here, by their reference.
    """
    problems, warnings = [], []
    for shown, before, names, moved in _vanished(project, committed, scripts):
        script = scripts.get(before["script"])
        declared = {one.name for one in script.variants(())} if script is not None else set()
        codes = script.codes if script is not None else ()
        still = [name for name in names if name in declared and before["variants"][name]["code"] in codes]
        if still:
            what = (
                f"lacks variant {few(still)}, which `main` has, and which {before['script']} measures still"
            )
            problems.append(Problem(shown, 1, what, RESTORE))
        if gone := [name for name in names if name not in still]:
            where = f"{before['script']} on {before['machine']}"
            what = f"lacks variant {few(gone)} of {where}, which `main` has"
            fix = "restore it from `main`, or say in the pull request why it goes"
            warnings.append(Problem(shown, 1, what, fix))
        if moved:
            what = f"is called {few(moved)} now, and what `main` has in it is of {before['script']}"
            warnings.append(Problem(shown, 1, what, "say in the pull request why its script is renamed"))
    return problems, warnings


def _vanished(
    project: Project, committed: Committed, scripts: Mapping[str, Script]
) -> Iterator[tuple[str, Any, list[str], list[str]]]:
    """The records of `main` that lack variants here, with these, and those that are called otherwise now.

    By path, of machines that are here; last, where the variants lie now of a record whose script is gone.
    """
    for shown in committed.changed(project.relative(project.records)):
        there = (project.root / shown).is_file()
        table = read_json(project.root / shown, shown)[0]
        # What is no record any more is told elsewhere.
        if there and record_problems(table, shown):
            continue
        before = committed.record(shown)
        if before is None or before["machine"] not in project.machines:
            continue
        is_renamed = not there and before["script"] not in scripts
        moved = dict(_moved(project, committed, before)) if is_renamed else {}
        held = [table] if there else moved.values()
        gone = [name for name in before["variants"] if not any(name in one["variants"] for one in held)]
        if gone or moved:
            yield shown, before, gone, list(moved)


def changed_samples(project: Project, committed: Committed, scripts: Mapping[str, Script]) -> Known:
    """Whose samples those of the records of `main` are that are gone here, or otherwise."""
    found: Known = {}
    for shown in committed.changed(project.relative(project.records)):
        if (before := committed.record(shown)) is not None:
            found |= known_samples(before, scripts.get(before["script"]))
    return found


def replaced_samples(project: Project, committed: Committed, scripts: Mapping[str, Script]) -> Known:
    """Whose samples those of campaigns are that `main` had once, of the scripts that have a new one here."""
    measured = {
        script.reference: script
        for script in scripts.values()
        for machine in project.machines
        if _has_new_campaign(project, committed, project.record_path(machine, script.reference))
    }
    standing = {
        name
        for script in measured.values()
        for path in committed.blobs
        if Path(path).parts[-2:] == Path(script.reference).with_suffix(".json").parts
        for name in (committed.record(path) or {"campaigns": {}})["campaigns"]
    }
    return past_samples(project, project.root, committed.commit, measured, standing)


def _moved(project: Project, committed: Committed, before: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    """The new records of its machine that are held to one that is gone, and share a campaign; by path."""
    for path in sorted((project.records / before["machine"]).glob("*/*.json")):
        shown = project.relative(path)
        if shown in committed.blobs:
            continue
        table = read_json(path, shown)[0]
        if record_problems(table, shown) or not before["campaigns"].keys() & table["campaigns"].keys():
            continue
        # All that is quoted of one publication shares a campaign.
        if _renamed(project, committed, table) is before:
            yield shown, table


def redescribed_machines(project: Project, committed: Committed) -> Iterator[Problem]:
    """The machines of `main` of which something else is said here, by a line for each; quoted ones too."""
    for shown in committed.changed(project.relative(project.records)):
        path = project.root / shown
        if path.name != "machine.json" or not path.is_file():
            continue
        machine, before = read_json(path, shown)[0], committed.table(shown)
        if machine_problems(machine, shown) or machine_problems(before, shown):
            continue
        fields = [
            name for name, _, _ in changed_fields(project, from_table(MachineDescription, machine), before)
        ]
        fields += [key for key in WORDING if before[key] != machine[key]]
        if fields:
            what = f"describes the machine otherwise than `main` ({few(fields)})"
            yield Problem(shown, 1, what, "say in the pull request what changed there")


def withdrawn_machines(project: Project, committed: Committed) -> Iterator[Problem]:
    """The machines that `main` has and that are gone, with all that was measured there."""
    for shown in committed.changed(project.relative(project.records)):
        path = project.root / shown
        if path.name == "machine.json" and path.parent.name not in project.machines:
            what = "is gone, with all that was measured on that machine"
            yield Problem(shown, 1, what, "restore it from `main`, or say in the pull request why it goes")


def added_machines(project: Project, committed: Committed) -> Iterator[Problem]:
    """The machines that `main` does not have: pages and predictions may say something else by one more."""
    for name in project.machines:
        shown = project.relative(project.records / name / "machine.json")
        if shown not in committed.blobs:
            what = f"describes {name}, a machine that `main` does not have"
            yield Problem(shown, 1, what, "say in the pull request who has it")


def _history_problems(
    before: Mapping[str, Any], table: Mapping[str, Any], grown: Collection[str], shown: str, text: str
) -> Iterator[Problem]:
    """Where the history of a record is not that of `main`, gone on with.

    Parameters:
        before: The record as `main` has it.
        table: The record.
        grown: The campaigns in which more was measured since.
        shown: Its path.
        text: Its content.
    """
    old, new = ([from_table(HistoryLine, one) for one in side["history"]] for side in (before, table))
    first, last = measured_days(datetime.now(UTC))
    known = {*before["campaigns"], *(line.campaign for line in old)}
    added = [line.campaign for line in new if line.campaign not in known]
    # Of too many lines the oldest went, for those of campaigns that stand in the record.
    standing = {variant["campaign"] for variant in table["variants"].values()}
    over = max(0, len(old) + len(standing.intersection(added)) - MOST_CAMPAIGNS)
    odd = [
        line.campaign
        for line in old[over:]
        # A line that a wrong clock dated goes.
        if first <= line.date <= last
        and not any(is_same(line, one) or (line.campaign in grown and continues(line, one)) for one in new)
    ]
    done = known - set(grown)
    odd += [line.campaign for line in new if line.campaign in done and not has_same(old, line)]
    dated = (line.campaign for line in old if first <= line.date <= last)
    latest = max((*before["campaigns"], *dated), default="")
    odd += [line.campaign for line in new if line.campaign not in known and line.campaign <= latest]
    names = {line.campaign for line in new}
    stay = list(dict.fromkeys(line.campaign for line in old if line.campaign in names))
    here = dict.fromkeys(line.campaign for line in new if line.campaign in stay)
    odd += [ours for ours, theirs in zip(here, stay, strict=True) if ours != theirs]
    if odd:
        what = f"the history of campaign {few(list(dict.fromkeys(odd)))} is otherwise on `main`"
        yield Problem(shown, json_line(text, ("history",)), what, RESTORE)


def edited_machine_problems(
    project: Project, committed: Committed, machine: Mapping[str, Any], shown: str, text: str
) -> Iterator[Problem]:
    """Where `main` describes a machine as another, or otherwise, though nothing was measured since.

    Its title and its short form may be worded better, and what is quoted corrected.

    Parameters:
        project: The checkout.
        committed: What `main` has.
        machine: The description, of the right shape.
        shown: Its path.
        text: Its content.
    """
    if is_published(machine["name"]) or committed.holds(shown, text) or shown not in committed.blobs:
        return
    before = committed.table(shown)
    # Of what is no description there, or one of another form, nothing can be said.
    if machine_problems(before, shown):
        return
    if odd := differing_key(before, machine):
        what = f"describes another machine than on `main` (its {odd} differs)"
        yield Problem(shown, 1, what, "restore it from `main`; another machine has another name")
        return
    fields = changed_fields(project, from_table(MachineDescription, machine), before)
    if fields and not _measured_anew(project, committed, machine["name"]):
        what = (
            f"is otherwise on `main` ({few([name for name, _, _ in fields])}), and nothing was measured since"
        )
        yield Problem(shown, 1, what, "restore it from `main`; `record` describes the machine anew")


def _measured_anew(project: Project, committed: Committed, machine: str) -> bool:
    """Whether a machine has a variant of a campaign that `main` does not have."""
    paths = sorted((project.records / machine).glob("*/*.json"))
    return any(_has_new_campaign(project, committed, path) for path in paths)


def _has_new_campaign(project: Project, committed: Committed, path: Path) -> bool:
    """Whether a record, if it is one, has a variant of a campaign that `main` does not have."""
    shown = project.relative(path)
    if committed.has_as_here(shown) or not path.is_file():
        return False
    table = read_json(path, shown)[0]
    if record_problems(table, shown):
        return False
    known = (committed.record(shown) or {"campaigns": {}})["campaigns"]
    return any(variant["campaign"] not in known for variant in table["variants"].values())


def _blob_of(content: bytes, length: int) -> str:
    """What git calls a content, by a name of so many digits."""
    content = b"blob %d\0" % len(content) + content
    made = hashlib.sha1(content, usedforsecurity=False) if length == 40 else hashlib.sha256(content)
    return made.hexdigest()
