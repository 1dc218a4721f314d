"""Everything a pull request must hold, all problems of all languages in one run."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchbook.calculator.checking import coefficient_problems
from benchbook.checking.claims import claim_problems
from benchbook.checking.committed import (
    Committed,
    added_machines,
    changed_samples,
    committed_records,
    edited_machine_problems,
    edited_problems,
    redescribed_machines,
    replaced_records,
    replaced_samples,
    unrelated_main,
    vanished_variants,
    withdrawn_machines,
)
from benchbook.checking.committed_scripts import (
    moved_region_problems,
    rearranged_scripts,
    undeclared_variants,
)
from benchbook.checking.copies import Known, copy_problems, known_samples
from benchbook.checking.declarations import (
    added_error_texts,
    added_maintained_machines,
    changed_coefficients,
    changed_declarations,
    changed_reviews,
    dropped_strings,
    otherwise_changed,
)
from benchbook.checking.displaced_machines import displaced_machines
from benchbook.checking.earlier_checks import codes_of_other_checks, earlier_checks_problems
from benchbook.checking.environments import (
    dependency_problems,
    environment_problems,
    package_problems,
    pin_problems,
)
from benchbook.checking.guide_pattern import pattern_problems
from benchbook.checking.links import anchors, calculator_link_problems, link_problems
from benchbook.checking.origins import (
    alike_problems,
    commit_problems,
    machine_origin_problems,
    measurer_problems,
    model_problems,
    python_problems,
)
from benchbook.checking.plausibility import (
    kind_problems,
    memory_warnings,
    plausibility_problems,
    speed_problems,
)
from benchbook.checking.predictions import (
    changed_predictions,
    forgotten_predictions,
    late_predictions,
    predictions_found,
)
from benchbook.checking.quotations import quotation_problems
from benchbook.checking.site_settings import SETTINGS, dropped_settings, site_setting_problems
from benchbook.checking.status import StatusRow, is_lent, script_status
from benchbook.checking.traces import (
    add_sizes,
    committed_problems,
    committed_traces,
    guide_problems,
    repacked_problems,
    unnamed_file_problems,
)
from benchbook.content.fence_names import CLAIM
from benchbook.content.page_limits import too_deep, unreadable_pages
from benchbook.content.page_source import PageSource, claim_sentences, parse_page
from benchbook.content.positions import json_line
from benchbook.content.problems import BenchbookError, Problem
from benchbook.content.project import FALLBACK, Project
from benchbook.content.records import (
    NOT_A_RECORD,
    OWNER_MARK,
    Record,
    described_campaigns,
    is_published,
    load_record,
    record_from,
)
from benchbook.content.revisions import git_answer, text_at
from benchbook.content.script import Script, read_script
from benchbook.content.site_files import LANGUAGE_FILE, site_file_problems, tree_problems, unreadable_tree
from benchbook.content.tracked import beside_script_problems, tracked_problems
from benchbook.content.unfinished import kept_drawing_problems, own_folder_problems, unfinished_problems
from benchbook.content.unforeseen import shows_traceback, unforeseen
from benchbook.content.validation import RECORD_AGAIN, machine_problems, read_json, record_problems
from benchbook.languages.language import load_language, missing_strings, unit_words
from benchbook.languages.prose import prose_problems
from benchbook.query.freshness import CODE_CHANGED, all_in_one, kinds_of, too_few_runs
from benchbook.query.library import Library
from benchbook.recording.estimate import work_problems
from benchbook.rendering.error_texts import error_text_problems
from benchbook.rendering.places import check_page, empty_counts
from benchbook.translations.checks import check_translations
from benchbook.translations.leftovers import foreign_problems
from benchbook.translations.sections import Section

# Thirty times those of this handbook. Each page links to all others: N of them take a time of N squared.
MOST_PAGES = 300
# Nearly twice as long as the longest here, with twice as many links: the lists of claims repeat each of them.
LONGEST_CLAIM, MOST_BRACKETS = 1000, 10
# What a claim is written in, as the parser calls it.
_MARKED = ("em_open", "em_close", "strong_open", "strong_close", "link_open", "link_close")
_BLOCKS = ("paragraph_open", "paragraph_close", "inline")
_IN_CLAIMS = frozenset({*_BLOCKS, *_MARKED, "text", "softbreak", "code_inline"})


@dataclass(frozen=True)
class CheckReport:
    """What is wrong (a pull request must not), and what only needs doing where someone has the machine."""

    problems: tuple[Problem, ...]
    warnings: tuple[Problem, ...]


@dataclass(frozen=True)
class _Read:
    """A record of the right shape, in its place.

    Parameters:
        path: The file, for messages.
        text: Its content, to find lines in.
        table: What it holds.
    """

    path: str
    text: str
    table: dict[str, Any]


@dataclass(frozen=True)
class _Measured(_Read):
    """A record as far as it was measured with its script as it stands.

    Its `table` is without the variants of other code and those that are quoted.

    Parameters:
        machine: The description of its machine.
    """

    machine: dict[str, Any]


def check_project(project: Project) -> CheckReport:
    """Hold the whole tree to its promises; one with links, pipes or pages without end in it is not read."""
    for unreadable in (unreadable_tree, tree_problems, unreadable_pages):
        if refused := _finest(list(unreadable(project))):
            return CheckReport(refused, ())
    pages, deep = _parsed(project)
    if deep:
        return CheckReport(tuple(deep), ())
    problems: list[Problem] = []
    warnings: list[Problem] = []
    changed: list[Problem] = []
    try:
        _look(project, pages, problems, warnings, changed)
    except BenchbookError as error:
        problems += error.problems
    except Exception as error:
        if shows_traceback():
            raise
        # What a file has that is told already need not be told by what fell over it.
        last = unforeseen(error, project.root)
        if not any(problem.path == last.path for problem in problems):
            problems.append(last)
    # What of others is changed first: of a thousand warnings nobody reads the last.
    first = _finest(changed)
    return CheckReport(_finest(problems), (*first, *(one for one in _finest(warnings) if one not in first)))


def _look(
    project: Project,
    pages: Mapping[Path, PageSource],
    problems: list[Problem],
    warnings: list[Problem],
    changed: list[Problem],
) -> None:
    """Look at all that can be read, and add what is found to `problems`, `warnings` and what is `changed`."""
    scripts, broken = _scripts(project)
    # What a script that cannot be read names as its inputs, nobody knows.
    problems += broken or beside_script_problems(project, scripts.values())
    problems += environment_problems(project, scripts.values())
    problems += pin_problems(project)
    problems += package_problems(project)
    problems += dependency_problems(project, scripts.values())
    problems += earlier_checks_problems(project, scripts)
    problems += own_folder_problems(project) or unfinished_problems(project)
    problems += tracked_problems(project)
    problems += kept_drawing_problems(project)
    described: dict[str, dict[str, object]] = {}
    measured: list[_Measured] = []
    recorded = _recorded(project)
    committed = committed_records(project)
    read: list[_Read] = []
    samples: Known = {}
    if committed is not None:
        samples |= replaced_samples(project, committed, scripts)
        samples |= changed_samples(project, committed, scripts)
    if (project.root / ".git").exists() and git_answer(project.root, "rev-parse", "--git-dir") is None:
        what = "cannot be read by git, so that nothing is held to what was committed"
        warnings.append(Problem(".git", 1, what, "run `git status` there, which says why"))
    for machine in project.machines:
        broken = list(_machine_problems(project, machine, scripts, read, described, measured, committed))
        problems += broken
        if not any(problem.path.endswith("machine.json") for problem in broken):
            reported = {problem.path for problem in broken}
            for row, problem in _freshness(project, machine, scripts, reported):
                # What was never recorded on one machine was on another, whose numbers pages show until it is.
                elsewhere = row.state == "missing" and (row.script, row.variant) in recorded
                # A guide is measured on the machine that it shows; of the others it asks nothing.
                if elsewhere and machine != project.config.reference_for(Path(row.script).parts[0]):
                    continue
                blocks = machine in project.config.blocking_machines and not elsewhere
                (problems if blocks else warnings).append(problem)
    problems += _copied(project, read, scripts, samples, committed)
    if committed is not None:
        vanished, withdrawn = vanished_variants(project, committed, scripts)
        problems += vanished
        changed += withdrawn
    for one in measured:
        beside = (
            (other.table, other.machine) for other in measured if other.table["script"] == one.table["script"]
        )
        warnings += memory_warnings(one.table, one.machine, beside, one.path, one.text)
        warnings += undeclared_variants(scripts[one.table["script"]], one.table, one.machine["name"])
    problems += alike_problems(described)
    problems += _strange_beside_others(project, scripts, measured)
    for folder in sorted({path.parents[1] for path in project.records.glob("*/*/*.json")}):
        if folder.name not in project.machines:
            fix = "restore its machine.json, or record on the machine again"
            what = "holds records of a machine that nothing describes"
            problems.append(Problem(project.relative(folder), 1, what, fix))
    problems += unnamed_file_problems(project)
    reference = project.config.reference_machine
    if reference and reference not in project.machines:
        fix = "record on it, or name a machine that has records"
        problems.append(
            Problem("pyproject.toml", 1, f"the reference machine {reference} has no records", fix)
        )
    problems += coefficient_problems(project)
    predicted = predictions_found(project)
    problems += predicted.problems
    warnings += predicted.warnings
    if committed is not None:
        problems += forgotten_predictions(project, committed)
        problems += late_predictions(project, committed)
        problems += dropped_strings(project, committed)
        problems += dropped_settings(project, text_at(project.root, committed.commit, SETTINGS) or "")
    problems += _quoting_problems(project)
    problems += _language_problems(project)
    problems += site_file_problems(project)
    library = Library(project)
    problems += _page_problems(library, pages)
    fallen, unnamed = claim_problems(library, pages)
    problems += fallen
    warnings += unnamed
    problems += error_text_problems(project, pages)
    short, drafts = pattern_problems(library, pages)
    problems += short
    warnings += drafts
    translated = check_translations(project, pages)
    problems += translated.errors
    warnings += translated.warnings
    (problems if project.config.translation_drift == "error" else warnings).extend(translated.drift)
    if committed is not None:
        changed += _changed(project, committed, scripts)
        told = {problem.path for problem in (*problems, *changed)}
        changed += otherwise_changed(project, committed, told)


def _changed(project: Project, committed: Committed, scripts: Mapping[str, Script]) -> list[Problem]:
    """What of `main` is otherwise here, where that may well be meant: whoever looks at a change is told."""
    return [
        *unrelated_main(project),
        *replaced_records(project, committed),
        *added_maintained_machines(project, committed),
        *redescribed_machines(project, committed),
        *withdrawn_machines(project, committed),
        *added_machines(project, committed),
        *rearranged_scripts(project, committed, scripts),
        *displaced_machines(project, committed, scripts),
        *changed_predictions(project, committed),
        *changed_coefficients(project, committed),
        *changed_declarations(project, committed),
        *changed_reviews(project, committed),
        *added_error_texts(project, committed),
    ]


def _parsed(project: Project) -> tuple[dict[Path, PageSource], list[Problem]]:
    """Every page, and what is wrong with those that the parser gives up."""
    pages: dict[Path, PageSource] = {}
    deep: list[Problem] = []
    for path in project.page_paths():
        try:
            pages[path] = parse_page(path.read_text("utf-8"))
        except RecursionError:
            deep.append(too_deep(project.relative(path)))
    return pages, deep


def _finest(problems: list[Problem]) -> tuple[Problem, ...]:
    """Each problem once; a reader that only knows "is not a record" yields to the check that says where."""
    named = {problem.path for problem in problems if not problem.what.startswith(NOT_A_RECORD)}
    fine = (p for p in problems if not (p.what.startswith(NOT_A_RECORD) and p.path in named))
    return tuple(sorted({(p.path, p.line, p.what): p for p in fine}.values()))


def _scripts(project: Project) -> tuple[dict[str, Script], list[Problem]]:
    scripts: dict[str, Script] = {}
    problems: list[Problem] = []
    for path in project.scripts().values():
        try:
            script = read_script(path, project.root)
        except BenchbookError as error:
            problems.extend(error.problems)
            continue
        scripts[script.reference] = script
        problems += work_problems(script)
        for name in script.metadata.inputs:
            if not os.path.isfile(path.parent / name):
                line = script.metadata.line_of("inputs")
                fix = "add the file, or remove it from `inputs`"
                problems.append(Problem(script.path, line, f"its input `{name}` is not there", fix))
    return scripts, problems


def _machine_problems(
    project: Project,
    machine: str,
    scripts: dict[str, Script],
    read: list[_Read],
    described: dict[str, dict[str, object]],
    measured: list[_Measured],
    committed: Committed | None,
) -> Iterator[Problem]:
    """What is wrong with a machine and its records.

    `read` takes in its records, `described` the machine by its file, and `measured` the records as far as
    they are of the scripts as they stand.
    """
    folder = project.records / machine
    path = folder / "machine.json"
    shown = project.relative(path)
    description, text, unreadable = read_json(path, shown)
    misshapen = unreadable or machine_problems(description, shown, text)
    yield from misshapen
    if misshapen:
        return
    if description["name"] != machine:
        yield Problem(
            shown, 1, f"describes {description['name']}, in the folder of {machine}", "rename one of the two"
        )
    described[shown] = description
    yield from machine_origin_problems(project, description, shown, is_here=True)
    yield from model_problems(description, shown)
    if committed is not None:
        yield from edited_machine_problems(project, committed, description, shown, text)
    sizes: dict[str, int] = {}
    sessions: dict[str, str] = {}
    for record in sorted(folder.glob("*/*.json")):
        yield from _record_problems(
            project, record, description, scripts, read, measured, sizes, sessions, committed
        )
    yield from guide_problems(sizes, machine, shown)


def _record_problems(
    project: Project,
    path: Path,
    machine: dict[str, object],
    scripts: dict[str, Script],
    read: list[_Read],
    measured: list[_Measured],
    sizes: dict[str, int],
    sessions: dict[str, str],
    committed: Committed | None,
) -> Iterator[Problem]:
    """What is wrong with a record.

    `read` takes it in, `measured` as far as it is of the script as it stands, `sizes` the bytes of its
    traces, by guide, and `sessions` the script of each of its campaigns that was measured.
    """
    shown = project.relative(path)
    table, text, unreadable = read_json(path, shown)
    misshapen = unreadable or record_problems(table, shown, text)
    yield from misshapen
    if misshapen:
        return
    place = project.record_path(str(table["machine"]), str(table["script"]))
    if place != path:
        what = f"is the record of {table['script']} on {table['machine']}"
        yield Problem(shown, 1, what, f"move it to {project.relative(place)}")
        return
    script = scripts.get(table["script"])
    mixed = quotation_problems(table, machine, script, shown, text)
    yield from mixed or measurer_problems(machine, table, shown)
    if script is not None and not mixed:
        yield from plausibility_problems(table, machine, script, shown, text)
        record = record_from(table)
        yield from _campaign_problems(project, record, script, shown)
        # A history may have been squashed, or begin later: that it lacks a commit shows nothing.
        yield from commit_problems(project.root, table, shown, reviewed=True)
        # What another version of the script asked for, nobody knows.
        current = {name: one for name, one in table["variants"].items() if one["code"] in script.codes}
        yield from python_problems(script, table, {one["campaign"] for one in current.values()}, shown)
        asked = {one.name: one for one in script.variants(kinds_of(project, record.machine))}
        # A machine that is lent to the maintainers cannot run more as soon as more is asked for.
        lent = is_lent(project, record.machine)
        for name in () if lent else sorted(current.keys() & asked.keys()):
            if (few := too_few_runs(record.variants[name], asked[name].repeats)) is not None:
                line = json_line(text, ("variants", name))
                yield Problem(shown, line, f"variant {name}: {few}", RECORD_AGAIN)
        measured.append(_Measured(shown, text, table | {"variants": current}, machine))
    if committed is not None:
        yield from edited_problems(project, committed, table, path, text)
        if script is not None:
            yield from moved_region_problems(project, committed, table, script, text)
    yield from committed_problems(project, table, script, path, text)
    add_sizes(sizes, table)
    used = {variant["campaign"] for variant in table["variants"].values()}
    for name, campaign in table["campaigns"].items():
        if name not in used:
            told = "is quoted of" if "source" in campaign else "measured"
            what = f"campaign {name} {told} no variant of the record"
            yield Problem(shown, json_line(text, ("campaigns", name)), what, "remove the campaign")
        if "source" not in campaign and sessions.setdefault(name, table["script"]) != table["script"]:
            what = f"campaign {name} is of {sessions[name]}, and a session is of one script"
            yield Problem(shown, json_line(text, ("campaigns", name)), what, RECORD_AGAIN)
    read.append(_Read(shown, text, table))
    if not os.path.isfile(project.snippets / table["script"]):
        yield Problem(shown, 1, f"its script {table['script']} is not there", "remove the record")


def _copied(
    project: Project,
    read: Sequence[_Read],
    scripts: Mapping[str, Script],
    samples: Known,
    committed: Committed | None,
) -> Iterator[Problem]:
    """Records that hold what others measured; of two, the one that `main` has as it is here is no copy.

    `samples` are those known besides, and take in the records.
    """

    def is_new(path: str) -> bool:
        return committed is None or not committed.has_as_here(path)

    seen: dict[str, list[dict[str, Any]]] = {}
    for one in sorted(read, key=lambda one: is_new(one.path)):
        script = scripts.get(one.table["script"])
        beside = seen.setdefault(one.table["script"], [])
        elsewhere = beside if is_new(one.path) else ()
        yield from copy_problems(one.table, samples, one.path, one.text, script, elsewhere)
        beside.append(one.table)
        for key, whose in known_samples(one.table, script).items():
            samples.setdefault(key, whose)
    yield from repacked_problems(
        sorted(committed_traces(project), key=lambda file: is_new(f"{Path(file[1]).parent}.json"))
    )


def _strange_beside_others(
    project: Project, scripts: dict[str, Script], measured: Sequence[_Measured]
) -> Iterator[Problem]:
    """Metrics that are of another kind than on the machines before, or far better than on the reference one.

    The reference machine comes first, and what is lent last.
    """
    lent_last = sorted(measured, key=lambda one: OWNER_MARK in one.machine["name"])
    for reference, script in scripts.items():
        name = project.config.reference_for(script.guide)
        records = [one for one in lent_last if one.table["script"] == reference]
        first = [one for one in records if one.machine["name"] == name]
        before = [one.table for one in first]
        for one in records:
            if one in first:
                continue
            yield from kind_problems(one.table, before, one.path, one.text)
            before.append(one.table)
            for known in first:
                yield from speed_problems(
                    one.table, one.machine, known.table, known.machine, script, one.path, one.text
                )


def _campaign_problems(project: Project, record: Record, script: Script, shown: str) -> Iterator[Problem]:
    """Times of two campaigns, which no table may show beside each other, on whatever machine it is drawn."""
    declared = {variant.name for variant in script.variants(kinds_of(project, record.machine))}
    campaigns = described_campaigns(record.variants, script.codes, declared)
    if script.is_timed and len(campaigns) > 1:
        what = f"its variants are of {len(campaigns)} campaigns, whose times cannot be compared"
        named = ", with the `--recorded-by` of its machine" if OWNER_MARK in record.machine else ""
        yield Problem(shown, 1, what, f"{all_in_one(script)}{named}")


def _freshness(
    project: Project, machine: str, scripts: dict[str, Script], reported: set[str]
) -> Iterator[tuple[StatusRow, Problem]]:
    kinds = kinds_of(project, machine)
    for script in scripts.values():
        known = project.relative(project.record_path(machine, script.reference)) in reported
        rows = script_status(project, script, machine, kinds)
        changed = any(row.reason == CODE_CHANGED for row in rows)
        earlier = codes_of_other_checks(project, script, machine) if changed else {}
        for row in rows:
            # What makes a record invalid is reported with its line already.
            told = row.state == "invalid" and known
            # Who lends a machine of their own owes no further record.
            lent = row.state == "missing" and OWNER_MARK in machine
            if row.state not in ("fresh", "published") and not told and not lent:
                yield row, _unfresh(script, row, earlier.get(row.variant))


def _recorded(project: Project) -> set[tuple[str, str]]:
    """The scripts and variants that some machine here has measured."""
    found: set[tuple[str, str]] = set()
    for machine in project.machines:
        if is_published(machine):
            continue
        for path in sorted((project.records / machine).glob("*/*.json")):
            try:
                record = load_record(path)
            except BenchbookError:
                continue  # reported with its line
            if record is not None:
                script = f"{path.parent.name}/{path.stem}.py"
                found |= {(script, variant) for variant in record.variants}
    return found


def _unfresh(script: Script, row: StatusRow, code: str | None) -> Problem:
    """What to say of a row; `code` is that of its record where nothing but its checks was otherwise."""
    variant = "" if row.variant == "default" else f", variant {row.variant}"
    what = f"its record on {row.machine}{variant} is {row.state}: {row.reason}"
    fix = f"run `benchbook record {script.reference}` there"
    if code is not None:
        fix += f'; or, for its checks alone changed, set `earlier_checks = ["{code}"]` in [tool.benchbook]'
    return Problem(script.path, 1, what, fix)


def _quoting_problems(project: Project) -> Iterator[Problem]:
    """What a machine whose figures are quoted may not be, and what must be said of it."""
    references = {project.config.reference_machine}
    references |= {project.config.reference_for(guide) for guide in project.config.guides}
    for name in sorted(filter(is_published, references)):
        what = f"the reference machine {name} was never measured here: its figures are quoted"
        yield Problem("pyproject.toml", 1, what, "name a machine that was recorded on")
    try:
        english = load_language(project.docs, FALLBACK)
    except BenchbookError:
        return  # reported with the languages
    for name in filter(is_published, project.machines):
        if english.label(name) is None:
            what = f"`labels:` has no `{name}`, which says what changed since its figures were published"
            yield Problem(f"docs/{FALLBACK}/{LANGUAGE_FILE}", 1, what, "add it, and translate it")


def _language_problems(project: Project) -> Sequence[Problem]:
    try:
        return missing_strings(project)
    except BenchbookError as error:
        return error.problems


def _page_problems(library: Library, pages: Mapping[Path, PageSource]) -> Iterator[Problem]:
    project = library.project
    english = {
        path.relative_to(project.docs / "en").as_posix(): page
        for path, page in pages.items()
        if path.is_relative_to(project.docs / "en")
    }
    if len(english) > MOST_PAGES:
        what = f"holds {len(english)} pages, and {MOST_PAGES} are the most"
        yield Problem(f"docs/{FALLBACK}", 1, what, "say it on fewer pages")
    known = anchors(english)
    words = {code: unit_words(project.docs, code) for code in project.languages}
    counts = empty_counts(project)
    for path, page in pages.items():
        shown = project.relative(path)
        language, _, name = path.relative_to(project.docs).as_posix().partition("/")
        yield from prose_problems(page, shown, words[language])
        yield from _claim_problems(page, shown)
        yield from link_problems(page, name, project.docs / language, shown, known)
        yield from calculator_link_problems(page, shown, known)
        yield from check_page(path, page, library, counts[language])
        if name not in english:
            fix = "write the English page first, or remove this one"
            yield Problem(shown, 1, "translates a page that English does not have", fix)
    yield from site_setting_problems(project, english)


def _claim_problems(page: PageSource, path: str) -> Iterator[Problem]:
    """What the text of a claim may not hold, for other pages repeat it, and what its sentence must."""
    words = [token for token in page.tokens if CLAIM in token.meta]
    found: list[Problem] = []
    for line, claim, said, _ in claim_sentences(page):
        for count, most, parts in (
            (len(said), LONGEST_CLAIM, "characters"),
            (said.count("["), MOST_BRACKETS, "`[`"),
        ):
            if count > most:
                what = f"the claim `{claim}` has {count} {parts}, and {most} are the most"
                found.append(Problem(path, line, what, "say it shorter, and the rest beside it"))
    line = 1
    for token in words:
        if token.map is not None:
            line = token.map[0] + 1
        called = f"the claim `{token.meta[CLAIM]}`"
        for part in (token, *(token.children or ())):
            line += part.type == "softbreak"
            if part.type not in _IN_CLAIMS and part.nesting >= 0:
                shown = (part.content or part.markup or part.type).strip().split("\n")[0]
                fix = "write paragraphs of words, `code`, values and links"
                found.append(Problem(path, line, f"{called} holds `{shown}`", fix))
        if token.type == "inline" and token.meta["sentence"]:
            said = "".join(child.content for child in token.children or () if child.type == "text")
            if not any(map(str.isalpha, said)):
                what = f"{called} has a sentence without words"
                found.append(Problem(path, line, what, "say in its first paragraph what is claimed"))
    yield from found or foreign_problems(Section(CLAIM, 1, 1, "", words), path)
