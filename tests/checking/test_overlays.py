"""What is here stays as it is: a bundle changes nothing of it unless that is meant, and it is said."""

from __future__ import annotations

import copy
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from benchbook.checking.bundles import Imported, import_bundles
from benchbook.content.problems import BenchbookError
from benchbook.content.project import Project
from benchbook.content.records import dump_record, load_record
from builders import MACHINE, MACHINE_JSON, SWEEP, make_project, make_record, packed, write

ADA = f"{MACHINE}--ada"
OLD = "cpu-old--published"
LINE = {
    "date": "2026-01-02",
    "campaign": "20260102T030405Z-test",
    "variants": ["steps=1"],
    "medians": {"steps=1": {"total": 7}},
}
Table = dict[str, Any]
Change = Callable[[Table], object]


def bundle_of(*variants: str) -> Table:
    """What Ada hands in of a campaign of hers, with these of its variants; each ran in places of its own."""
    machine = copy.deepcopy(MACHINE_JSON) | {"name": ADA, "owner": "Ada"}
    record = json.loads(dump_record(make_record(SWEEP))) | {"machine": ADA, "history": [copy.deepcopy(LINE)]}
    for number, variant in enumerate(record["variants"].values()):
        for run in variant["runs"]:
            run["place"] += 3 * number
    record["variants"] = {name: record["variants"][name] for name in variants}
    campaign(record).update(recorded_by="Ada", state={"load_average": 0.5, "shared": False})
    return {"schema": 1, "machine": machine, "records": [record]}


def campaign(record: Table) -> Table:
    (found,) = record["campaigns"].values()
    assert isinstance(found, dict)
    return found


@pytest.fixture
def project(tmp_path: Path) -> Project:
    """A checkout with the first variant of what Ada measured."""
    project = make_project(tmp_path / "checkout", SWEEP)
    project.record_path(MACHINE, "sums/add.py").unlink()
    take(project, bundle_of("steps=1"))
    return project


def take(project: Project, bundle: Table, replacing: bool = False, reviewed: bool = False) -> Imported:
    path = write(project.root.parent / "bundle.json", packed(bundle))
    return import_bundles(Project(project.root), [path], replacing, reviewed)


def contents(project: Project) -> dict[Path, bytes]:
    return {path: path.read_bytes() for path in sorted(project.snippets.rglob("*")) if path.is_file()}


def refused(project: Project, bundle: Table, replacing: bool = False) -> list[str]:
    """What is said of a bundle that is refused, and leaves everything as it was."""
    before = contents(project)
    with pytest.raises(BenchbookError) as caught:
        take(project, bundle, replacing)
    assert contents(project) == before
    named = f"{project.root.parent / 'bundle.json'}:1: "
    return [str(problem).removeprefix(named) for problem in caught.value.problems]


FIELDS: dict[str, tuple[Change, str]] = {
    "virtualisation": (lambda m: m.update(virtualisation="kvm"), 'virtualisation (null by "kvm")'),
    "system.kernel": (lambda m: m["system"].update(kernel="6.8"), 'system.kernel (null by "6.8")'),
    "system.os": (
        lambda m: m["system"].update(os="Debian 12.1 " * 10),
        'system.os (null by "Debian 12.1 Debian 12.1 Debian 12.1 Debian 12.1 Debian 12.1…)',
    ),
    "memory": (lambda m: m.update(memory_bytes=24 * 2**30 - 1), "memory_bytes (25769803776 by 25769803775)"),
}


@pytest.mark.parametrize("field", FIELDS)
def test_a_field_of_a_machine_that_is_here_changes_only_if_that_is_meant(
    project: Project, field: str
) -> None:
    bundle = bundle_of("steps=1")
    change, told = FIELDS[field]
    change(bundle["machine"])
    line = f"snippets/records/{ADA}/machine.json: {told}"
    assert refused(project, bundle) == [f"it would replace {line}; pass --replace if that is meant"]
    assert take(project, bundle, replacing=True).replaced == (line,)


def test_a_description_that_is_here_and_cannot_be_read_is_not_written_over(project: Project) -> None:
    write(project.records / ADA / "machine.json", "{")
    (said,) = refused(project, bundle_of("steps=1"), replacing=True)
    assert said.startswith(f"snippets/records/{ADA}/machine.json:1: cannot be read")


def quoted(published: str = "2019-05", recorded_by: str = "Grace") -> Table:
    """A bundle of figures that someone published."""
    source = {"url": "https://example.org/paper", "title": "A paper", "published": published}
    paper = {
        "source": source,
        "measured": None,
        "recorded_by": recorded_by,
        "packages": {},
        "state": {},
    }
    bundle = bundle_of("steps=1")
    words = {"title": "An old processor", "short": "Old CPU"}
    bundle["machine"] |= {"name": OLD, "owner": None, "published": True, **words}
    (record,) = bundle["records"]
    record |= {"machine": OLD, "campaigns": {"paper": paper}, "history": []}
    record["variants"]["steps=1"] |= {"campaign": "paper", "code": None, "inputs": {}, "output": {}}
    for run in record["variants"]["steps=1"]["runs"]:
        run["cells"] = {}
    return bundle


def test_the_machine_of_a_publication_is_described_once(project: Project) -> None:
    take(project, quoted())
    worded, other = quoted(), quoted()
    worded["machine"]["system"]["kernel"] = "4.15"
    other["machine"]["cpu"]["cores"] = 64
    assert "machine.json: system.kernel" in refused(project, worded)[0]
    (said,) = refused(project, other, replacing=True)
    assert f"{OLD} is here already and is another machine (its cpu cores differs)" in said


@pytest.mark.parametrize("key", ["title", "short"])
def test_a_machine_of_a_publication_is_not_called_as_another_is(project: Project, key: str) -> None:
    bundle = quoted()
    bundle["machine"][key] = MACHINE_JSON[key].upper()
    (said,) = refused(project, bundle)
    assert said.startswith(f"{OLD} has the {key} {MACHINE_JSON[key].upper()!r}, as {MACHINE} has")


def test_a_publication_stays_the_one_that_it_is(project: Project) -> None:
    take(project, quoted())
    (said,) = refused(project, quoted("2020"), replacing=True)
    assert "campaign paper is here already, and is another publication" in said


@pytest.mark.parametrize("published", ["0000", "2022-02-30", "2022-11-45"])
def test_a_publication_has_a_date_of_the_calendar(project: Project, published: str) -> None:
    assert "published" in refused(project, quoted(published))[0]


@pytest.mark.parametrize("measured", ["0000-01-01", "2022-13-45", "2019-02-29"])
def test_a_publication_was_measured_on_a_day_of_the_calendar(project: Project, measured: str) -> None:
    bundle = quoted()
    bundle["records"][0]["campaigns"]["paper"]["measured"] = measured
    assert f"measured: {measured} is in no calendar" in refused(project, bundle)[0]


def test_a_publication_was_taken_over_at_a_moment_of_the_calendar(project: Project) -> None:
    bundle = quoted()
    bundle["records"][0]["campaigns"]["paper"]["taken_over"] = "2026-02-31T00:00:00Z"
    assert "taken_over: 2026-02-31T00:00:00Z is in no calendar" in refused(project, bundle)[0]


@pytest.mark.parametrize("published", ["2999", "2999-01", "2999-01-01"])
def test_nothing_is_quoted_from_the_future(project: Project, published: str) -> None:
    (said,) = refused(project, quoted(published))
    assert f"campaign paper: it was published in {published}, which is in the future" in said


@pytest.mark.parametrize("published", ["2019", "2019-05", "2019-05-31"])
def test_a_publication_is_dated_by_its_year_its_month_or_its_day(project: Project, published: str) -> None:
    assert take(project, quoted(published)).written


SESSIONS: dict[str, Change] = {
    "commit": lambda c: c.update(commit="0" * 40),
    "packages": lambda c: c["packages"].update(torch="2.11"),
    "predicates": lambda c: c.update(predicates={"a-claim": "sha256:" + "0" * 64}),
    "state.load_average": lambda c: c["state"].update(load_average=0.1),
    "finished": lambda c: c.update(finished="2026-01-02T03:05:04Z"),
}


@pytest.mark.parametrize("field", SESSIONS)
def test_what_is_known_of_a_campaign_that_is_here_stays(project: Project, field: str) -> None:
    bundle = bundle_of("steps=1", "steps=2")
    SESSIONS[field](campaign(bundle["records"][0]))
    (said,) = refused(project, bundle, replacing=True)
    assert f"is here already, of another session (its {field} differs)" in said


@pytest.mark.parametrize(("field", "value"), [("shared", True), ("foreign_processes", [])])
def test_who_else_used_the_device_in_a_campaign_that_is_here_changes_only_if_that_is_meant(
    project: Project, field: str, value: object
) -> None:
    bundle = bundle_of("steps=1")
    campaign(bundle["records"][0])["state"][field] = value
    line = f"sums/add.py on {ADA}: state.{field} of campaign {LINE['campaign']}"
    assert f"it would replace {line};" in refused(project, bundle)[0]
    assert take(project, bundle, replacing=True).replaced == (line,)


def test_the_sessions_of_a_campaign_that_is_here_stay(project: Project) -> None:
    once, twice = bundle_of("steps=1"), bundle_of("steps=1")
    campaign(twice["records"][0])["resumed"] = ["2026-01-02T03:04:35Z"]
    line = f"sums/add.py on {ADA}: resumed of campaign {LINE['campaign']}"
    assert f"it would replace {line};" in refused(project, twice)[0]
    assert take(project, twice, replacing=True).replaced == (line,)
    assert "(its resumed differs)" in refused(project, once, replacing=True)[0]


def test_a_campaign_that_was_shared_stays_so(project: Project) -> None:
    shared, alone = bundle_of("steps=1"), bundle_of("steps=1")
    campaign(shared["records"][0])["state"]["shared"] = True
    take(project, shared, replacing=True)
    assert "(its state.shared differs)" in refused(project, alone, replacing=True)[0]


OTHER_KINDS: dict[str, tuple[Change, str]] = {
    "a parameter": (
        lambda record: record["variants"]["steps=1"]["parameters"].update(steps=True),
        "sums/add.py, variant steps=1: was recorded from other code, values or libraries",
    ),
    "a metric": (
        lambda record: record["variants"]["steps=1"]["runs"][0]["metrics"].update(total=6.0),
        f"sums/add.py on {ADA}: variant steps=1, measured 2026-01-02, by 2026-01-02",
    ),
    "a median": (
        lambda record: record["history"][0]["medians"]["steps=1"].update(total=7.0),
        f"sums/add.py on {ADA}: the history of campaign {LINE['campaign']}",
    ),
}


@pytest.mark.parametrize("kind", OTHER_KINDS)
def test_what_is_here_is_not_written_as_a_value_of_another_kind(project: Project, kind: str) -> None:
    bundle = bundle_of("steps=1")
    change, told = OTHER_KINDS[kind]
    change(bundle["records"][0])
    assert told in "\n".join(refused(project, bundle))


def test_what_is_here_keeps_the_order_of_its_keys(project: Project) -> None:
    bundle, before = bundle_of("steps=1"), contents(project)
    (record,) = bundle["records"]
    for table in (campaign(record), record["variants"]["steps=1"], record["history"][0]):
        items = list(table.items())
        table.clear()
        table.update(reversed(items))
    campaign(record)["state"] = dict(reversed(campaign(record)["state"].items()))
    run = record["variants"]["steps=1"]["runs"][0]
    run["cells"] = dict(reversed(run["cells"].items()))
    assert take(project, bundle).replaced == ()
    assert contents(project) == before


LINES: dict[str, Change] = {
    "no median": lambda line: line["medians"]["steps=1"].clear(),
    "no variant": lambda line: line.update(variants=[]),
    "a variant more": lambda line: line.update(variants=[*line["variants"], "steps=9"]),
    "a median more": lambda line: line["medians"].update({"steps=9": {"total": 1.0}}),
}


@pytest.mark.parametrize("change", LINES)
def test_a_line_of_the_history_changes_only_if_that_is_meant(project: Project, change: str) -> None:
    bundle = bundle_of("steps=1")
    LINES[change](bundle["records"][0]["history"][0])
    line = f"sums/add.py on {ADA}: the history of campaign {LINE['campaign']}"
    assert f"it would replace {line};" in refused(project, bundle)[0]
    assert take(project, bundle, replacing=True).replaced == (line,)


def test_a_bundle_without_the_history_that_is_here_takes_nothing_of_it(project: Project) -> None:
    bundle = bundle_of("steps=1")
    bundle["records"][0]["history"] = []
    before = contents(project)
    assert take(project, bundle).replaced == ()
    assert contents(project) == before


def test_a_line_that_is_here_twice_is_here_once_after_an_import(project: Project) -> None:
    path, once = project.record_path(ADA, "sums/add.py"), contents(project)
    record = json.loads(path.read_text("utf-8"))
    record["history"] *= 1000
    write(path, json.dumps(record))
    assert take(project, bundle_of("steps=1")).replaced == ()
    assert contents(project) == once


def test_history_of_campaigns_that_nobody_knows_is_added_only_if_that_is_meant(project: Project) -> None:
    bundle = bundle_of("steps=1")
    bundle["records"][0]["history"].append(LINE | {"campaign": "20260102-another"})
    (said,) = refused(project, bundle)
    assert f"it would add sums/add.py on {ADA}: the history of campaign 20260102-another;" in said


def test_a_line_of_a_campaign_that_no_variant_is_of_is_added_only_if_that_is_meant(project: Project) -> None:
    bundle = bundle_of("steps=1")
    (record,) = bundle["records"]
    name = "20260103T030405Z-none"
    record["campaigns"][name] = campaign(record) | {
        "started": "2026-01-03T03:04:05Z",
        "finished": "2026-01-03T03:05:05Z",
    }
    record["history"].append(LINE | {"campaign": name, "date": "2026-01-03"})
    (said,) = refused(project, bundle)
    assert f"it would add sums/add.py on {ADA}: the history of campaign {name};" in said


def test_a_campaign_that_was_gone_on_with_is_added_to_only_if_that_is_meant(project: Project) -> None:
    later = LINE | {"campaign": "20260102T050000Z-late"}
    path = project.record_path(ADA, "sums/add.py")
    here = json.loads(path.read_text("utf-8"))
    here["history"].append(later)
    write(path, json.dumps(here))
    whole = bundle_of("steps=1", "steps=2")
    sessions = {"finished": "2026-01-03T03:05:05Z", "resumed": ["2026-01-03T03:04:05Z"]}
    campaign(whole["records"][0]).update(sessions)
    whole["records"][0]["history"][0] |= {"date": "2026-01-03", "variants": ["steps=1", "steps=2"]}
    line = f"sums/add.py on {ADA}: variant steps=2, to campaign {LINE['campaign']}, which is here"
    assert refused(project, whole) == [f"it would add {line}; pass --replace if that is meant"]
    done = take(project, whole, replacing=True)
    assert (done.replaced, done.added) == ((), (line,))
    record = load_record(path)
    assert record is not None
    assert len(record.variants) == 2
    # Its line stays where it was.
    assert [line.campaign for line in record.history] == [LINE["campaign"], later["campaign"]]


def test_a_variant_of_another_campaign_is_added_only_if_that_is_meant(project: Project) -> None:
    bundle = bundle_of("steps=2")
    (record,) = bundle["records"]
    another = "20260102T030405Z-more"
    record["campaigns"] = {another: campaign(record)}
    record["variants"]["steps=2"]["campaign"] = another
    line = f"sums/add.py on {ADA}: variant steps=2, of campaign {another}, beside those that are here"
    said = f"it would add {line}; pass --replace if that is meant"
    assert refused(project, bundle) == [said]
    assert take(project, bundle, replacing=True).added == (line,)


def test_what_was_reviewed_goes_on_with_its_campaign(project: Project) -> None:
    assert take(project, bundle_of("steps=2"), reviewed=True).added


def test_a_variant_cannot_have_run_where_another_of_its_campaign_did(project: Project) -> None:
    forged = bundle_of("steps=2")
    for place, run in enumerate(forged["records"][0]["variants"]["steps=2"]["runs"]):
        run["place"] = 2 + place
    (said,) = refused(project, forged, replacing=True)
    assert f"variant steps=2 ran in places of campaign {LINE['campaign']} that others have here" in said


def test_a_campaign_of_another_script_is_joined_in_no_case(project: Project) -> None:
    write(project.snippets / "sums/sub.py", SWEEP)
    bundle = bundle_of("steps=1")
    bundle["records"][0]["script"] = "sums/sub.py"
    for replacing in (False, True):
        said = " ".join(refused(project, bundle, replacing=replacing))
        assert f"campaign {LINE['campaign']} is of sums/add.py, and a session is of one script" in said


def posing(name: str, owner: str | None) -> Table:
    bundle = bundle_of("steps=1")
    bundle["machine"] |= {"name": name, "owner": owner}
    bundle["records"][0]["machine"] = name
    campaign(bundle["records"][0])["recorded_by"] = owner or "maintainers"
    for place, run in enumerate(bundle["records"][0]["variants"]["steps=1"]["runs"]):
        run["cells"]["add"]["seconds"] *= 1.01 + place / 100
    return bundle


@pytest.mark.parametrize("name", ["cpu-new", MACHINE])
@pytest.mark.parametrize("owner", [None, "", "★"])
def test_a_machine_from_outside_is_none_of_the_maintainers(
    project: Project, name: str, owner: str | None
) -> None:
    whose = "is the reference machine" if name == MACHINE else "is described as a machine of the maintainers"
    assert f"{name} {whose}" in refused(project, posing(name, owner), replacing=True)[0]


def test_a_new_machine_of_the_maintainers_comes_from_a_reviewed_commit(project: Project) -> None:
    assert take(project, posing("cpu-new", None), reviewed=True).written


@pytest.mark.parametrize("owner", ["maintainers", "Maintainers", "the maintainers", "A Maintainer"])
def test_nobody_from_outside_is_called_as_the_maintainers_are(project: Project, owner: str) -> None:
    name = f"cpu-new--{owner.lower().replace(' ', '-')}"
    assert f"{name} belongs to {owner}, which is what" in refused(project, posing(name, owner))[0]


def test_the_maintainers_are_not_quoted_as_having_measured(project: Project) -> None:
    (said,) = refused(project, quoted(recorded_by="maintainers"))
    assert "campaign paper is quoted, and says that the maintainers measured it" in said


def test_what_is_added_of_another_campaign_changes_no_line_of_one_that_is_done(project: Project) -> None:
    other = "20260103T030405Z-more"
    bundle = bundle_of("steps=1", "steps=2")
    (record,) = bundle["records"]
    later = {"started": "2026-01-03T03:04:05Z", "finished": "2026-01-03T03:05:05Z"}
    record["campaigns"][other] = campaign(record) | later
    record["variants"]["steps=2"]["campaign"] = other
    line = {"date": "2026-01-03", "campaign": other, "variants": ["steps=2"], "medians": {}}
    record["history"].append(line)
    told = refused(project, bundle)
    assert not [one for one in told if "the history of campaign" in one]
    record["history"][0]["medians"]["steps=2"] = {"total": 999}
    history = f"the history of campaign {LINE['campaign']}"
    assert [one for one in refused(project, bundle) if one.endswith(history) or f"{history};" in one]
