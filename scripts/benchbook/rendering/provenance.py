"""Where a number comes from, and what its machine is called: a line for all, details for those who ask."""

from __future__ import annotations

import hashlib
import re
import subprocess
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from html import escape
from typing import Any

from benchbook.content.parameters import on_a_line, parameters_text
from benchbook.content.project import Project
from benchbook.content.records import Campaign, Publication
from benchbook.content.units import UNITS, Unit, shared_unit, unit_beside
from benchbook.languages.formatting import NO_BREAK_SPACE
from benchbook.languages.language import Language
from benchbook.query.library import Machine
from benchbook.query.measurements import Measurement, Predicted, RecordedVariant
from benchbook.rendering.downloads import notebook_path, prediction_path, record_path, script_path
from benchbook.statistics.summary import FEWEST

# A row of the details: its key (`fact_<key>` in the language's strings), how to show it, and what.
# The ways: "text", "code", "block" (code on lines of its own) and "links" (pairs of text and address).
Row = tuple[str, str, Any]
# What the recorder calls a machine in a sentence, with its memory and whose it is; and a CPU beside a number.
_TITLE = re.compile(r"(.+?)(?:, (\d+) GB)?((?: \([^()]*\))*)")
# No machine has a million: what a stranger's title says beyond is no number that a page could write.
_CPU = re.compile(r"([0-9]{1,6})-core CPU")
_SHORT = re.compile(r"CPU ([0-9]{1,6})-core")


def machine_title(machine: Machine, language: Language) -> str:
    """What `machine` is called in a sentence: "2-core CPU, 24 GB", "NVIDIA H200, 141 GB (Ada)"."""
    found = _TITLE.fullmatch(machine.title)
    if found is None:
        return machine.title
    model, size, owners = found.groups()
    cpu = _CPU.fullmatch(model)
    parts = [language.text("cpu_cores", n=int(cpu[1])) if cpu else model]
    title = language.listed([*parts, f"{size}{NO_BREAK_SPACE}GB"] if size else parts)
    for owner in re.findall(r"\(([^()]*)\)", owners):
        title = _with(language, title, owner)
    return title


def marked_title(machine: Machine, language: Language) -> str:
    """The same, with where its numbers come from: "NVIDIA V100, 16 GB (published)"."""
    title = machine_title(machine, language)
    remark = "published" if machine.published else "measured" if machine.measured else "predicted"
    return language.text("with_remark", text=title, remark=language.text(remark))


def machine_short(machine: Machine, language: Language) -> str:
    """What `machine` is called beside a number: "H200", "2-core CPU"."""
    found = _SHORT.fullmatch(machine.short)
    return machine.short if found is None else language.text("cpu_cores", n=int(found[1]))


# Fields of a configuration that say how large the model is, none of them long; the raw record has them all.
_DIMENSIONS = 6
_LONGEST_DIMENSION = 80


def predicted_mark(language: Language, fits_not: bool = False) -> str:
    """The mark of what was predicted, not measured.

    Parameters:
        language: Of the page.
        fits_not: Whether the run does not fit the machine, which the mark says too.
    """
    hint = escape(language.text("predicted_fits_not_hint" if fits_not else "predicted_hint"))
    word, outcome = escape(language.text("predicted")), ""
    if fits_not:
        word += escape(language.text("comma"))
        outcome = f'<span class="bb-outgrown">{escape(language.text("predicted_fits_not"))}</span>'
    return f'<abbr class="bb-predicted" title="{hint}">≈ <span class="bb-word">{word}</span>{outcome}</abbr>'


def predicted_line(predictions: Sequence[Predicted], measured: bool, language: Language) -> list[str]:
    """The segments of the one line that no reader may miss: "torch 2.13", "predicted Nov 2026, not measured".

    Parameters:
        predictions: What the block shows of them.
        measured: Whether it shows measurements beside them.
        language: Of the page.
    """
    if not predictions:
        return []
    if measured:
        return [language.text("predicted_too")]
    versions = dict.fromkeys(f"torch {_short(one.prediction.packages)}" for one in predictions)
    months = dict.fromkeys(language.month(one.prediction.made) for one in predictions)
    comma = language.text("comma")
    return [comma.join(versions), language.text("predicted_in", month=comma.join(months))]


def _short(packages: Mapping[str, str]) -> str:
    return ".".join(packages.get("torch", "").split("+")[0].split(".")[:2])


def predicted_rows(predictions: Sequence[Predicted], measured: bool, language: Language) -> list[Row]:
    """The details: when and by which predictor, whether blind, for what, and how to make them again."""
    if not predictions:
        return []
    comma = language.text("comma")
    made = dict.fromkeys(one.prediction.made[:10] for one in predictions)
    versions = dict.fromkeys(_versions(one.prediction.packages, language) for one in predictions)
    rules = dict.fromkeys(language.text("rules", n=one.prediction.predictor) for one in predictions)
    commits = dict.fromkeys(one.prediction.commit[:12] for one in predictions if one.prediction.commit)
    rows: list[Row] = [
        ("predicted_on", "text", comma.join(language.day(day) for day in made)),
        ("predictor", "text", comma.join((*rules, *versions, *commits))),
        ("blind", "text", _blindness(predictions, language)),
    ]
    if model := _common([one.prediction.model for one in predictions]):
        shown = list(model.items())
        text = ", ".join(
            f"{key} = {value}"
            for key, value in shown[:_DIMENSIONS]
            if not isinstance(value, (dict, list)) and len(str(value)) <= _LONGEST_DIMENSION
        )
        rows.append(("model", "code", text + (", …" if len(shown) > _DIMENSIONS else "")))
    if workload := _common([one.prediction.workload for one in predictions]):
        rows.append(("workload", "code", ", ".join(f"{key} = {value}" for key, value in workload.items())))
    rooms = dict.fromkeys(one.prediction.room for one in predictions if one.prediction.room is not None)
    if rooms:
        rows.append(("room", "text", comma.join(_bytes(room, language) for room in rooms)))
    scripts = {(one.machine.name, one.script.reference): None for one in predictions}
    name = language.text("raw_prediction") + language.text("colon")
    links = [(f"{name}{script}", prediction_path(machine, script)) for machine, script in scripts]
    rows.append(("record", "links", links))
    if not measured:
        machine = predictions[0].machine.name
        names = " ".join(script for _, script in scripts)
        rows.append(("command", "code", f"benchbook predictions {names} --machine {machine}"))
    return rows


def value_rows(one: Predicted, language: Language, name: str, shown: Unit | None = None) -> list[Row]:
    """The details of one predicted quantity, called `name`: its value, and what makes up the peak.

    Parameters:
        one: The prediction.
        language: Of the page.
        name: How the page refers to it.
        shown: The unit of what it is compared with; None for one that suits it alone.
    """
    text = language.quantity(one.value, UNITS["B"], shown).text
    hint = language.text("predicted_fits_not_hint" if one.fits_not else "predicted_hint")
    remark = language.text("with_remark", text=text, remark=hint)
    rows: list[Row] = [("quantity", "code", name), ("prediction", "text", remark)]
    peak = one.prediction.categories
    if one.value == one.prediction.peak_allocated and peak:
        parts = [
            f"{language.label(category) or category}{NO_BREAK_SPACE}{_bytes(size, language)}"
            for category, size in sorted(peak.items(), key=lambda item: -item[1])
            if size
        ]
        rows.append(("peak", "text", " · ".join(parts)))
    return rows


def _bytes(size: int, language: Language) -> str:
    return language.isolated(language.quantity(size, UNITS["B"]).text)


def _blindness(predictions: Sequence[Predicted], language: Language) -> str:
    blind = {one.prediction.blind for one in predictions}
    return language.text("blind_some") if len(blind) > 1 else language.flag(blind.pop())


def _common(tables: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """What all the tables agree on."""
    first, *others = tables
    return {
        key: value for key, value in first.items() if all(repr(one.get(key)) == repr(value) for one in others)
    }


def published_line(publications: Sequence[Publication], language: Language) -> list[str]:
    """The segment of the one line that no reader may miss: "published 2022, not measured here"."""
    years = dict.fromkeys(language.year(each.source.published + "-01-01") for each in publications)
    listed = language.text("comma").join(years)
    return [language.text("published_in", year=listed)] if publications else []


def published_rows(
    publications: Sequence[Publication], machine: Machine, language: Language
) -> list[tuple[str, str, Any]]:
    """The details: each source with its address and date, and what has changed since."""
    if not publications:
        return []
    sources = {each.source.url: each.source for each in publications}.values()
    days = dict.fromkeys(language.date(source.published) for source in sources)
    changed = language.label(machine.name)
    return [
        ("source", "links", [(source.title, source.url) for source in sources]),
        ("published", "text", language.text("comma").join(days)),
        *([("changed", "text", changed)] if changed else []),
    ]


_STEADY_SHARE = 0.005  # half a percentage point
_SHOWN_SAMPLES = 20
# Stands in the HTML of a block for the way from the page to the root of the site, which differs by language.
ROOT = "\uf8ff"
# The row that stands in the page itself, for those who run no script: links to the raw records.
_RAW = "record"


@dataclass(frozen=True)
class Origin:
    """What the samples of one block on one machine have in common, in one language.

    Parameters:
        line: The segments of the one line: machine, library, month.
        rows: The details.
        stale: Whether the script has changed since.
    """

    line: tuple[str, ...]
    rows: tuple[Row, ...]
    stale: bool = False


@dataclass(frozen=True)
class Commits:
    """The commit that last changed each record and prediction, as far as git knows.

    Parameters:
        project: Whose records.
    """

    project: Project

    @cached_property
    def by_path(self) -> dict[str, str]:
        """Commit by path of the record, relative to the project; empty outside a repository."""
        paths = ("snippets/records", "snippets/predictions")
        command = ["git", "log", "--format=%x00%H", "--name-only", "--relative", "--", *paths]
        try:
            done = subprocess.run(command, cwd=self.project.root, capture_output=True, text=True, check=True)
        except (OSError, subprocess.CalledProcessError):
            return {}
        found: dict[str, str] = {}
        for entry in done.stdout.split("\0"):
            commit, *changed = entry.strip().split("\n")
            for path in filter(None, changed):
                found.setdefault(path, commit)
        return found


def origin_key(sources: Sequence[RecordedVariant], predictions: Sequence[Predicted] = ()) -> str:
    """A short name for the origin of `sources` and `predictions` that is the same in every language."""
    parts = sorted(
        {f"{s.machine.name}|{s.script.reference}|{s.result.campaign}|{s.verdict.state}" for s in sources}
    )
    parts += sorted({repr(sorted(source.overridden.items())) for source in sources})
    parts.append(environment_text(sources))
    parts += sorted(
        {f"{one.machine.name}|{one.script.reference}|{one.prediction.digest}" for one in predictions}
    )
    return hashlib.sha256("\n".join(parts).encode()).hexdigest()[:10]


def environment_text(sources: Sequence[RecordedVariant]) -> str:
    """The variables set for `sources`, as a shell sets them; with their variants where not all had them."""
    variants: dict[str, list[str]] = {}
    for source in sources:
        text = " ".join(f"{name}={value}" for name, value in sorted(source.result.environment.items()))
        variants.setdefault(text, []).append(source.variant.name)
    if len(variants) <= 1:
        return next(iter(variants), "")
    return "; ".join(f"{text} ({' '.join(dict.fromkeys(names))})" for text, names in variants.items() if text)


def origin(
    sources: Sequence[RecordedVariant],
    predictions: Sequence[Predicted],
    language: Language,
    project: Project,
    commits: Commits,
) -> Origin:
    """Where `sources` and `predictions`, variants of one or more scripts on one machine, come from."""
    machine = sources[0].machine if sources else predictions[0].machine
    campaigns = [source.campaign for source in _each_once(sources)]
    scripts = list(dict.fromkeys(source.script.reference for source in sources))
    own = [campaign for campaign in campaigns if isinstance(campaign, Campaign)]
    publications = [campaign for campaign in campaigns if isinstance(campaign, Publication)]
    comma = language.text("comma")
    line = [machine_short(machine, language), *_library_line(campaigns, language)]
    line += published_line(publications, language)
    line += [comma.join(dict.fromkeys(language.month(campaign.started) for campaign in own))] if own else []
    if any(campaign.state.get("shared") for campaign in campaigns):
        line.append(language.text("shared"))
    line += predicted_line(predictions, bool(sources), language)
    rows: list[Row] = [("machine", "text", _with(language, machine_title(machine, language), machine.name))]
    rows += [("device", "text", text) for text in _device(machine.details)]
    states = dict.fromkeys(text for campaign in campaigns if (text := _state(campaign.state, language)))
    rows += [("state", "text", text) for text in states]
    rows += published_rows(publications, machine, language)
    versions = dict.fromkeys(
        text for campaign in campaigns if (text := _versions(campaign.packages, language))
    )
    rows += [("versions", "text", text) for text in versions]
    rows += [("date", "text", days)] if (days := days_text(campaigns, language)) else []
    people = dict.fromkeys(campaign.recorded_by for campaign in campaigns)
    by = comma.join(language.text("maintainers") if name == "maintainers" else name for name in people)
    rows += [("by", "text", by)] if people else []
    if sources and (parameters := sources[0].overridden):
        rows.append(("parameters", "code", parameters_text(parameters)))
    if environment := environment_text(sources):
        rows.append(("environment", "code", on_a_line(environment)))
    records = [
        (f"{language.text('raw_record')}{language.text('colon')}{name}", record_path(machine.name, name))
        for name in scripts
    ]
    rows += [("record", "links", records)] if records else []
    if own:
        rows.append(("command", "code", f"benchbook record {' '.join(scripts)}"))
    rows += predicted_rows(predictions, bool(sources), language)
    scripts = list(dict.fromkeys([*scripts, *(one.script.reference for one in predictions)]))
    files = [(_with(language, name, language.text("script")), script_path(name)) for name in scripts]
    files += [(_with(language, name, language.text("notebook")), notebook_path(name)) for name in scripts]
    rows.append(("files", "links", files))
    rows += _citation(sources, project, commits)
    return Origin(tuple(line), tuple(rows), any(source.verdict.state == "stale" for source in sources))


def result_rows(
    measurement: Measurement, language: Language, name: str, shown: Unit | None = None
) -> list[Row]:
    """The details of one quantity, called `name`: median, spread and samples.

    Parameters:
        measurement: The quantity on a machine.
        language: Of the page.
        name: How the page refers to it.
        shown: The unit of what it is compared with; None for one that suits its samples.
    """
    summary = measurement.summary
    if summary is None:
        return []
    rows: list[Row] = [("quantity", "code", name)]
    if measurement.flag:
        return [*rows, ("result", "text", language.flag(bool(summary.median)))]
    common = shown or shared_unit([(sample, measurement.unit) for sample in measurement.samples])

    def text(value: float) -> str:
        unit = measurement.unit
        return language.quantity(value, unit, unit_beside(value, unit, common)).text

    if measurement.source.quoted:
        return [*rows, ("figure", "text", text(summary.median))]
    counted = language.text("median_of_seeds" if measurement.seeds else "median_of", n=summary.count)
    rows.append(("result", "text", _with(language, text(summary.median), counted)))
    if summary.spread:
        what = "spread" if summary.count >= FEWEST else "half_range"
        rows.append((what, "text", language.text("spread", spread=language.percent(summary.spread))))
    if within := measurement.within_runs:
        blocks = language.text("blocks", n=within.count)
        spread = language.text("spread", spread=language.percent(within.spread or 0.0))
        rows.append(("blocks", "text", f"{blocks}{language.text('comma')}{spread}"))
    if summary.count > 1:
        samples = [language.isolated(text(sample)) for sample in measurement.samples]
        more = ["…"] if len(samples) > _SHOWN_SAMPLES else []
        rows.append(("samples", "text", " · ".join(samples[:_SHOWN_SAMPLES] + more)))
    return rows


def _visible_spread(measurement: Measurement) -> float:
    """The spread of its samples; 0 for a share of nearly nothing, which may double unnoticed."""
    summary = measurement.summary
    if summary is None or not summary.spread:
        return 0.0
    if measurement.unit.symbol == "1" and (summary.upper - summary.lower) / 2 < _STEADY_SHARE:
        return 0.0
    return summary.spread


def counted_text(counts: Sequence[int], language: Language) -> str:
    """Of how many runs the medians of some values are."""
    if len(set(counts)) > 1:
        return language.text("median_of_several", least=min(counts), n=max(counts))
    return language.text("median_of", n=max(counts, default=0))


def repeats_text(measurements: Iterable[Measurement], language: Language) -> str:
    """How often and how alike: "median of 8, ±1 %"; the widest spread where there are several."""
    measured = [one for one in measurements if not one.source.quoted]
    summaries = [found for one in measured if (found := one.summary) is not None]
    if not summaries:
        return ""
    counts = sorted({summary.count for summary in summaries})
    seeds = any(one.seeds for one in measured)
    counted = language.text("median_of_seeds", n=counts[0]) if seeds else counted_text(counts, language)
    if counts[-1] > 1 and all(summary.spread == 0 for summary in summaries):
        return language.text("same_in", n=counts[0])
    spreads = [spread for one in measured if (spread := _visible_spread(one))]
    if not spreads:
        return counted
    return (
        f"{counted}{language.text('comma')}{language.text('spread', spread=language.percent(max(spreads)))}"
    )


def details_element(inner: str = "") -> str:
    """The element of the details of a block, whose part "origin" they are; without any, it does not show."""
    return f'<details class="bb-provenance" data-part="origin" data-pagefind-ignore>{inner}</details>'


def render_details(key: str, shown: Origin, repeats: str, language: Language) -> str:
    """The line, and behind it the raw record; a script fetches the other details once a reader opens it.

    Parameters:
        key: The name of the origin in the page's data.
        shown: The origin.
        repeats: How often and how alike.
        language: Of the page.
    """
    raw = render_rows([row for row in shown.rows if row[0] == _RAW], language)
    title = escape(language.text("provenance"))
    line = render_line(shown, repeats, language)
    return f'<summary title="{title}">{line}</summary><dl data-origin="{key}">{raw}</dl>'


def render_line(shown: Origin, repeats: str, language: Language) -> str:
    """The HTML of the one line: machine, library, month, repeats, and whether the script has changed."""
    segments = [*shown.line, repeats] if repeats else shown.line
    line = f'{NO_BREAK_SPACE}<span class="bb-dot">·</span> '.join(
        f"<bdi>{escape(text)}</bdi>" for text in segments
    )
    stale = f' <span class="bb-stale">{stale_mark(language)}</span>' if shown.stale else ""
    return f'<span class="bb-line">{line}</span>{stale}'


def render_rows(rows: Iterable[Row], language: Language) -> str:
    """The HTML of rows of the details, for a `<dl>`."""
    shown = (
        (escape(language.text(f"fact_{key}")), _content(way, content, language)) for key, way, content in rows
    )
    return "".join(f"<div><dt>{name}</dt><dd>{content}</dd></div>" for name, content in shown)


def stale_mark(language: Language) -> str:
    """The mark of what was recorded before the script last changed."""
    hint, word = escape(language.text("older_code_hint")), escape(language.text("older_code"))
    return f'<abbr class="bb-old" title="{hint}">◷ <span class="bb-word">{word}</span></abbr>'


def _content(way: str, content: Any, language: Language) -> str:
    if way == "links":
        return escape(language.text("comma")).join(
            f'<a href="{escape(_address(to))}"><bdi>{escape(text)}</bdi></a>' for text, to in content
        )
    if way == "block":
        return f'<pre lang="en" dir="ltr" tabindex="0"><code>{escape(content)}</code></pre>'
    if way == "code":
        return f'<code lang="en" dir="ltr">{escape(content)}</code>'
    return f"<bdi>{escape(content)}</bdi>"


def days_text(campaigns: Iterable[Campaign | Publication], language: Language) -> str:
    """The days on which campaigns began, and in how many sessions one was measured that was stopped."""
    days: list[str] = []
    sessions = 1
    for campaign in campaigns:
        if isinstance(campaign, Campaign):
            days.append(campaign.started)
            sessions = max(sessions, 1 + len(campaign.resumed))
        elif campaign.measured:
            days.append(campaign.measured)
    text = language.text("comma").join(dict.fromkeys(map(language.day, days)))
    return text if sessions == 1 else _with(language, text, language.text("in_sessions", n=sessions))


def _with(language: Language, text: str, remark: str) -> str:
    """`text` with a remark in the brackets of the language."""
    return language.text("with_remark", text=text, remark=remark)


def _address(to: str) -> str:
    return to if to.startswith("https://") else f"{ROOT}{to}"


def _each_once(sources: Sequence[RecordedVariant]) -> list[RecordedVariant]:
    return list({source.result.campaign: source for source in sources}.values())


def _library_line(campaigns: Sequence[Any], language: Language) -> list[str]:
    found: dict[str, None] = {}
    for campaign in campaigns:
        name = "torch" if "torch" in campaign.packages else "python"
        if name in campaign.packages:
            major_minor = re.match(r"\d+(\.\d+)?", campaign.packages[name])
            found[f"{name} {major_minor[0] if major_minor else campaign.packages[name]}"] = None
    return [language.listed(found)] if found else []


def _versions(packages: Mapping[str, str], language: Language) -> str:
    return language.listed(f"{name} {version}" for name, version in sorted(packages.items()))


def _device(details: dict[str, Any]) -> list[str]:
    accelerator, cpu = details.get("accelerator"), details.get("cpu") or {}
    if accelerator and accelerator.get("name"):
        count = accelerator.get("count") or 1
        return [f"{count} × {accelerator['name']}" if count > 1 else str(accelerator["name"])]
    return [str(cpu["model"])] if cpu.get("model") else []


def _state(state: dict[str, Any], language: Language) -> str:
    parts = [str(state["driver"])] if state.get("driver") else []
    parts += [f"{state['power_limit_watts']:g} W"] if state.get("power_limit_watts") else []
    return language.listed(parts)


def _citation(sources: Sequence[RecordedVariant], project: Project, commits: Commits) -> list[Row]:
    repository = project.config.repository.rstrip("/")
    rows: list[Row] = []
    for script in dict.fromkeys(source.script.reference for source in sources):
        source = next(source for source in sources if source.script.reference == script)
        if not isinstance(source.campaign, Campaign):
            continue  # its source is to be cited, to which the details lead
        path = project.relative(project.record_path(source.machine.name, script))
        commit = commits.by_path.get(path)
        if not repository.startswith("https://") or commit is None:
            continue
        address = f"{repository}/blob/{commit}/{path}"
        rows.append(("cite", "links", [(commit[:12], address)]))
        rows.append(("bibtex", "block", _bibtex(source, source.campaign.started[:4], address)))
    return rows


def _bibtex(source: RecordedVariant, year: str, address: str) -> str:
    title = re.sub(r"[^\w\s,.()+/-]", "", f"{source.script.reference} on {source.machine.title}")
    key = re.sub(r"[^a-z0-9]+", "-", f"{source.script.reference} {source.machine.name}".lower())
    return "\n".join(
        (
            f"@misc{{{key},",
            f"  title = {{{title}}},",
            "  howpublished = {Transformer performance handbook},",
            f"  year = {{{year}}},",
            f"  url = {{{address}}},",
            "}",
        )
    )
