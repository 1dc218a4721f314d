"""What is here is replaced only by later campaigns, where that is meant, and it is said."""

from __future__ import annotations

import copy
import json
import re
import shutil
import threading
from pathlib import Path
from typing import Any

import pytest

from benchbook.checking import bundles
from benchbook.checking.bundles import import_at, import_bundles
from benchbook.content import unfinished
from benchbook.content.problems import BenchbookError
from benchbook.content.project import Project
from benchbook.content.records import load_record
from benchbook.content.unfinished import alone
from benchbook.rendering import specs
from benchbook.rendering.places import page_references
from builders import MACHINE, SCRIPT, SWEEP, make_project, packed, with_table, write
from bundled import (
    GUEST,
    OTHER,
    bundle_of,
    called,
    campaign,
    committed,
    contents,
    later,
    refusal,
    renamed,
    take,
    variant,
)
from clones import benchbook
from handbooks import edit


def test_what_was_measured_is_replaced_only_if_that_is_meant_and_it_is_said(
    project: Project, tmp_path: Path
) -> None:
    import_bundles(project, [write(tmp_path / "bundle.json", packed(bundle_of()))])
    record = project.record_path(GUEST, "sums/add.py")
    before = record.read_bytes()
    path = write(tmp_path / "later.json", packed(later(bundle_of())))
    said = f"sums/add.py on {GUEST}: variant default, measured 2026-01-02, by 2026-01-03"
    with pytest.raises(BenchbookError, match=f"it would replace {said}; pass --replace if that is meant"):
        import_bundles(project, [path])
    assert record.read_bytes() == before
    assert import_bundles(project, [path], replacing=True).replaced == (said,)
    assert record.read_bytes() != before


def test_a_record_joins_a_machine_that_is_here_only_if_the_machine_is_named_and_it_is_said(
    project: Project, tmp_path: Path
) -> None:
    write(project.snippets / "sums/sub.py", SCRIPT)
    import_bundles(project, [write(tmp_path / "bundle.json", packed(bundle_of()))])
    further = later(bundle_of())
    further["records"][0]["script"] = "sums/sub.py"
    path = write(tmp_path / "further.json", packed(further))
    line = f"sums/sub.py on {GUEST}, a machine of Ada that is here already"
    refused = benchbook(project.root, "import", str(path))
    assert refused.returncode == 1
    assert f"it would add {line}; pass `--machine {GUEST}` if that is meant" in refused.stderr
    assert not project.record_path(GUEST, "sums/sub.py").exists()
    done = benchbook(project.root, "import", "--machine", GUEST, str(path))
    assert (done.returncode, f"added {line}\n" in done.stdout) == (0, True)


def test_bundles_of_a_new_machine_need_no_name_of_it(project: Project, tmp_path: Path) -> None:
    path = write(tmp_path / "bundle.json", packed(bundle_of()))
    assert import_bundles(project, [path]).added == ()
    # Nor does what is here already, as it is.
    assert import_bundles(project, [path]).added == ()


def test_an_older_campaign_never_replaces_a_later_one(project: Project, tmp_path: Path) -> None:
    import_bundles(project, [write(tmp_path / "bundle.json", packed(later(bundle_of(), "2026-01-05")))])
    path = write(tmp_path / "older.json", packed(later(bundle_of(), "2026-01-04")))
    older = json.loads(path.read_text("utf-8"))
    variant(older)["runs"][0]["cells"]["add"]["seconds"] /= 3
    for replacing in (False, True):
        with pytest.raises(
            BenchbookError, match=r"was measured 2026-01-04, and is here as measured 2026-01-05"
        ):
            import_bundles(project, [write(path, packed(older))], replacing=replacing)


def test_another_session_under_the_name_of_one_that_is_here_is_refused(
    project: Project, tmp_path: Path
) -> None:
    import_bundles(project, [write(tmp_path / "bundle.json", packed(bundle_of()))])
    record = project.record_path(GUEST, "sums/add.py")
    before = record.read_bytes()
    other = bundle_of()
    campaign(other).update(packages={"python": "3.12.0"})
    for replacing in (False, True):
        with pytest.raises(BenchbookError, match="is here already, of another session"):
            import_bundles(project, [write(tmp_path / "other.json", packed(other))], replacing=replacing)
    assert record.read_bytes() == before


def test_variants_of_two_campaigns_of_a_timed_script_are_refused(project: Project, tmp_path: Path) -> None:
    timed = SWEEP.replace('"count"', '"s"')
    write(project.snippets / "sums/add.py", timed)

    def of(kept: str, name: str, first: int = 0) -> Path:
        bundle = bundle_of(timed)
        record = bundle["records"][0]
        ((_, session),) = record["campaigns"].items()
        called = f"20260102T030405Z-{name}"
        record["campaigns"] = {called: session}
        record["variants"] = {kept: record["variants"][kept] | {"campaign": called}}
        runs = record["variants"][kept]["runs"]
        runs += [json.loads(json.dumps(runs[place % 3])) for place in range(5)]
        for place, run in enumerate(runs):
            run["place"] = first + place
            run["metrics"]["total"] = 0.1 + (first + place) / 1000
            for meters in run["cells"].values():
                meters["seconds"] = 0.1 + (first + place) / 100
        return write(tmp_path / f"{name}.json", packed(bundle))

    import_bundles(project, [of("steps=1", "one")])
    with pytest.raises(BenchbookError, match="its variants would be of 2 campaigns"):
        import_bundles(project, [of("steps=2", "two", 8)], replacing=True)
    import_bundles(project, [of("steps=2", "one", 8)], replacing=True)


@pytest.mark.parametrize(("value", "kind"), [([6, 7], "a series"), (True, "yes or no")])
def test_another_kind_of_value_where_other_machines_have_one_number_is_refused(
    project: Project, tmp_path: Path, value: Any, kind: str
) -> None:
    import_bundles(project, [write(tmp_path / "bundle.json", packed(bundle_of()))])
    other = renamed(later(bundle_of()), OTHER, "Bob")
    for run in variant(other)["runs"]:
        run["metrics"]["total"] = value
    path = write(tmp_path / "other.json", packed(other))
    with pytest.raises(BenchbookError, match=f"total is {kind}, and one number on other machines"):
        import_bundles(project, [path])


def test_yes_and_no_where_other_machines_have_a_series_of_numbers_is_refused(
    project: Project, tmp_path: Path
) -> None:
    edit(project.docs / "en/sums.md", "#total`", "#total[-1]`")
    here, other = bundle_of(), renamed(later(bundle_of()), OTHER, "Bob")
    for bundle, series in ((here, [6, 7]), (other, [True, False])):
        for run in variant(bundle)["runs"]:
            run["metrics"]["total"] = series
    import_bundles(project, [write(tmp_path / "bundle.json", packed(here))])
    with pytest.raises(
        BenchbookError, match="total is a series of yes and no, and a series on other machines"
    ):
        import_bundles(project, [write(tmp_path / "other.json", packed(other))])


def test_a_count_that_is_yes_in_one_run_is_refused(project: Project, tmp_path: Path) -> None:
    bundle = bundle_of()
    variant(bundle)["runs"][0]["metrics"]["total"] = True
    said = refusal(project, write(tmp_path / "bundle.json", packed(bundle)))
    assert "total is yes or no in some of its runs, and a number in others" in said


def test_a_series_where_a_page_asks_for_one_number_is_refused(project: Project, tmp_path: Path) -> None:
    bundle = bundle_of()
    for run in variant(bundle)["runs"]:
        run["metrics"]["total"] = [6, 7]
    said = refusal(project, write(tmp_path / "bundle.json", packed(bundle)))
    assert "bundle.json:1: with it, docs/en/sums.md:7: `sums/add.py#total` is a series of 2" in said


def test_one_number_where_a_page_asks_for_an_item_is_refused(project: Project, tmp_path: Path) -> None:
    edit(project.docs / "en/sums.md", "#total`", "#total[-1]`")
    said = refusal(project, write(tmp_path / "bundle.json", packed(bundle_of())))
    assert "docs/en/sums.md:7: `total` is one number, not a series" in said


REGION = SCRIPT.replace("total = sum", "# region adding\ntotal = sum", 1).replace(
    "print(", "# endregion\nprint(", 1
)


def test_a_region_that_a_page_shows_was_reached(project: Project, tmp_path: Path) -> None:
    write(project.snippets / "sums/add.py", REGION)
    edit(project.docs / "en/sums.md", "sums/add.py#add\n", "sums/add.py#adding\n")
    bundle = bundle_of(REGION)
    path = tmp_path / "bundle.json"
    said = "with it, docs/en/sums.md:9: the region `adding` of `sums/add.py` was not reached in default"
    assert said in refusal(project, write(path, packed(bundle)))
    variant(bundle)["regions"] = ["adding"]
    import_bundles(project, [write(path, packed(bundle))])
    again = later(bundle_of(REGION))
    with pytest.raises(BenchbookError, match=said):
        import_bundles(project, [write(path, packed(again))], replacing=True)


def test_the_first_variants_may_come_in_before_the_one_that_reaches_a_region(
    project: Project, tmp_path: Path
) -> None:
    sweep = with_table("[tool.benchbook.matrix]\nsteps = [1, 2]", REGION)
    write(project.snippets / "sums/add.py", sweep)
    edit(project.docs / "en/sums.md", "sums/add.py#add\n", "sums/add.py#adding\n")
    bundle = bundle_of(sweep)
    del bundle["records"][0]["variants"]["steps=2"]
    assert import_bundles(project, [write(tmp_path / "bundle.json", packed(bundle))]).written


def timed_eight_times(script: str, day: str, *kept: str) -> dict[str, Any]:
    """What Ada hands in of some variants of a script whose times are compared, by a campaign of that day."""
    bundle = bundle_of(script)
    (record,) = bundle["records"]
    held = campaign(bundle) | {"started": f"{day}T03:04:05Z", "finished": f"{day}T03:05:05Z"}
    record["campaigns"] = {called(day): held}
    record["variants"] = {name: record["variants"][name] | {"campaign": called(day)} for name in kept}
    for number, each in enumerate(record["variants"].values()):
        each["runs"] = [copy.deepcopy(each["runs"][0]) for _ in range(8)]
        for place, run in enumerate(each["runs"], 8 * number):
            run["place"] = place
            run["metrics"]["total"] = (int(day[-2:]) + place / 100) / 10
            for meters in run["cells"].values():
                meters["seconds"] = int(day[-2:]) / 10 + place / 1000
    return bundle


def test_a_part_of_the_variants_that_leaves_two_campaigns_where_a_page_compares_is_refused(
    project: Project, tmp_path: Path
) -> None:
    timed = SWEEP.replace('"count"', '"s"')
    script = write(project.snippets / "sums/add.py", timed)
    ratio = "`#!value sums/add.py?steps=2#total / sums/add.py?steps=1#total x`"
    edit(project.docs / "en/sums.md", "`#!value sums/add.py#total`", ratio)
    both = packed(timed_eight_times(timed, "2026-01-03", "steps=1", "steps=2"))
    import_bundles(project, [write(tmp_path / "both.json", both)])
    changed = timed.replace("sum(range(steps))", "sum(range(steps)) + 0")
    write(script, changed)
    before = contents(project)
    path = write(tmp_path / "one.json", packed(timed_eight_times(changed, "2026-01-05", "steps=1")))
    with pytest.raises(BenchbookError, match=f"one.json:1: with it, .*two campaigns on {GUEST}"):
        import_bundles(project, [path], replacing=True, machine=GUEST)
    assert contents(project) == before
    both = packed(timed_eight_times(changed, "2026-01-05", "steps=1", "steps=2"))
    assert import_bundles(project, [write(path, both)], replacing=True, machine=GUEST).replaced


def test_the_first_variants_of_a_script_may_come_in_before_the_others_that_a_page_compares(
    project: Project, tmp_path: Path
) -> None:
    timed = SWEEP.replace('"count"', '"s"')
    write(project.snippets / "sums/add.py", timed)
    ratio = "`#!value sums/add.py?steps=2#total / sums/add.py?steps=1#total x`"
    edit(project.docs / "en/sums.md", "`#!value sums/add.py#total`", ratio)
    one = packed(timed_eight_times(timed, "2026-01-03", "steps=1"))
    assert import_bundles(project, [write(tmp_path / "one.json", one)]).written


def test_a_history_that_grows_too_long_loses_its_oldest_lines(project: Project, tmp_path: Path) -> None:
    import_bundles(project, [write(tmp_path / "bundle.json", packed(bundle_of()))])
    long = later(bundle_of())
    line = {"date": "2026-01-02", "variants": [], "medians": {}}
    long["records"][0]["history"] = [line | {"campaign": f"20260102-{number}"} for number in range(1000)]
    import_bundles(project, [write(tmp_path / "long.json", packed(long))], replacing=True)
    again = later(bundle_of(), "2026-01-06")
    again["records"][0]["history"] = [line | {"campaign": called("2026-01-06"), "date": "2026-01-06"}]
    for run in variant(again)["runs"]:
        run["cells"]["add"]["seconds"] *= 1.01 + run["place"] / 97
    import_bundles(project, [write(tmp_path / "again.json", packed(again))], replacing=True)
    record = load_record(project.record_path(GUEST, "sums/add.py"))
    assert record is not None
    assert (len(record.history), record.history[-1].campaign) == (1000, called("2026-01-06"))


def test_what_is_imported_twice_replaces_nothing(project: Project, tmp_path: Path) -> None:
    path = write(tmp_path / "bundle.json", packed(bundle_of()))
    import_bundles(project, [path])
    assert import_bundles(project, [path]).replaced == ()


def test_the_reference_machine_s_records_come_from_a_reviewed_commit_alone(tmp_path: Path) -> None:
    project = make_project(tmp_path / "checkout")
    path = write(tmp_path / "bundle.json", packed(renamed(later(bundle_of()), MACHINE, None)))
    with pytest.raises(BenchbookError, match="cpu-test is the reference machine"):
        import_bundles(project, [path], replacing=True)
    assert import_bundles(project, [path], replacing=True, reviewed=True).written


def test_a_session_is_not_older_than_the_commit_that_it_names(project: Project, tmp_path: Path) -> None:
    bundle = bundle_of()
    campaign(bundle)["commit"] = committed(project, "2026-01-08")
    path = write(tmp_path / "bundle.json", packed(bundle))
    assert "started at 2026-01-02T03:04:05Z, before its commit" in refusal(project, path)
    campaign(bundle)["commit"] = "0" * 40
    path = write(tmp_path / "bundle.json", packed(bundle))
    assert "from commit 000000000000, which is not in this history" in refusal(project, path)


def test_a_session_of_a_commit_that_is_here_is_taken(project: Project, tmp_path: Path) -> None:
    bundle = bundle_of()
    campaign(bundle)["commit"] = committed(project, "2026-01-01")
    assert import_bundles(project, [write(tmp_path / "bundle.json", packed(bundle))]).written


@pytest.mark.parametrize(
    ("source", "what"),
    [
        (None, "which has no sums/add.py"),
        (SCRIPT.replace("sum(", "0 + sum("), "has other code than sums/add.py"),
    ],
    ids=["no script", "another"],
)
def test_a_session_of_a_commit_that_has_another_script_is_refused(
    project: Project, tmp_path: Path, source: str | None, what: str
) -> None:
    script = project.snippets / "sums/add.py"
    script.unlink() if source is None else write(script, source)
    bundle = bundle_of()
    campaign(bundle)["commit"] = committed(project, "2026-01-01")
    write(script, SCRIPT)
    assert what in refusal(project, write(tmp_path / "bundle.json", packed(bundle)))


def test_a_run_of_the_workflow_takes_bundles_of_its_own_machine_alone(tmp_path: Path) -> None:
    project = make_project(tmp_path / "checkout")
    committed(project, "2026-01-01")
    before = {path: path.read_bytes() for path in project.records.rglob("*.json")}
    posing = write(tmp_path / "posing.json", packed(renamed(later(bundle_of()), MACHINE, None)))
    with pytest.raises(BenchbookError, match="it is of the machine cpu-test, and cpu-other was asked for"):
        import_at(project, [posing], "HEAD", replacing=True, machine="cpu-other")
    with pytest.raises(BenchbookError, match="they would change cpu-test, the reference machine"):
        import_at(project, [posing], "HEAD", replacing=True)
    assert {path: path.read_bytes() for path in project.records.rglob("*.json")} == before
    assert import_at(project, [posing], "HEAD", replacing=True, machine=MACHINE).replaced


def test_without_the_name_of_its_machine_a_bundle_changes_nothing_that_another_measured(
    project: Project, tmp_path: Path
) -> None:
    import_bundles(project, [write(tmp_path / "bundle.json", packed(bundle_of()))])
    committed(project, "2026-01-01")
    path = write(tmp_path / "later.json", packed(later(bundle_of())))
    with pytest.raises(BenchbookError, match=f"they would change sums/add.py on {GUEST}"):
        import_at(project, [path], "HEAD", replacing=True)
    assert benchbook(project.root, "import", "--replace", str(path)).returncode == 2
    done = benchbook(project.root, "import", "--replace", "--machine", GUEST, str(path))
    assert (done.returncode, f"replaced sums/add.py on {GUEST}" in done.stdout) == (0, True)


def of_one_variant(name: str, day: str) -> dict[str, Any]:
    """What Ada hands in of one variant, by a campaign of that day."""
    bundle = bundle_of(SWEEP)
    (record,) = bundle["records"]
    held = campaign(bundle) | {"started": f"{day}T03:04:05Z", "finished": f"{day}T03:05:05Z"}
    record["campaigns"] = {called(day): held}
    record["variants"] = {name: record["variants"][name] | {"campaign": called(day)}}
    for place, run in enumerate(record["variants"][name]["runs"]):
        run["cells"]["add"]["seconds"] *= 1 + int(day[-2:]) / 97 + place / 89
    return bundle


@pytest.fixture
def since(project: Project, tmp_path: Path) -> tuple[Project, str]:
    """A checkout whose scripts are committed, and into which the fifth of January came since; that commit."""
    write(project.snippets / "sums/add.py", SWEEP)
    before = committed(project, "2026-01-01")
    path = write(tmp_path / "since.json", packed(of_one_variant("steps=1", "2026-01-05")))
    import_bundles(project, [path])
    return project, before


@pytest.mark.parametrize("known", ["imported", "committed"])
@pytest.mark.parametrize(("day", "variant"), [("2026-01-03", "steps=1"), ("2026-01-06", "steps=2")])
def test_what_came_in_since_a_revision_goes_by_no_import_at_it_unless_that_is_meant(
    since: tuple[Project, str], tmp_path: Path, known: str, day: str, variant: str
) -> None:
    project, revision = since
    if known == "committed":
        committed(project, "2026-01-05")
    before = contents(project)
    path = write(tmp_path / "bundle.json", packed(of_one_variant(variant, day)))
    name = f"snippets/records/{GUEST}/sums/add.json"
    with pytest.raises(BenchbookError) as caught:
        import_at(project, [path], revision)
    assert str(caught.value) == (
        f"{name}:1: is not as {revision} holds it, and would be written over; "
        "import at a commit that holds it as it is here; or pass --replace if that is meant"
    )
    assert contents(project) == before
    done = import_at(project, [path], revision, replacing=True, machine=GUEST)
    assert done.replaced == (f"{name}, which was not as {revision} holds it",)


def test_a_bundle_comes_in_twice_at_one_revision(since: tuple[Project, str], tmp_path: Path) -> None:
    project, revision = since
    before = contents(project)
    assert import_at(project, [tmp_path / "since.json"], revision).replaced == ()
    assert contents(project) == before


def test_a_description_that_was_worded_since_a_revision_stays(
    since: tuple[Project, str], tmp_path: Path
) -> None:
    project, revision = since
    description = project.records / GUEST / "machine.json"
    table = json.loads(description.read_text("utf-8")) | {"title": "A better title"}
    write(description, json.dumps(table))
    with pytest.raises(BenchbookError, match=r"machine\.json:1: is not as .* holds it"):
        import_at(project, [tmp_path / "since.json"], revision)
    assert json.loads(description.read_text("utf-8")) == table


@pytest.mark.parametrize("revision", [None, "HEAD"])
def test_of_two_imports_at_once_neither_undoes_the_other(
    project: Project, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, revision: str | None
) -> None:
    write(project.snippets / "sums/add.py", SWEEP)
    committed(project, "2026-01-01")
    paths = [
        write(tmp_path / f"{name}.json", packed(of_one_variant(name, day)))
        for name, day in (("steps=1", "2026-01-05"), ("steps=2", "2026-01-06"))
    ]
    real, turns = bundles.write_together, iter(paths[1:])

    def second() -> None:
        """Import the other bundle as soon as nobody keeps it from that."""
        with alone(project.root, waiting=False) as free:
            pass
        if free and (path := next(turns, None)):
            import_bundles(project, [path], replacing=True, machine=GUEST)

    def write_second_first(*arguments: Any) -> None:
        second()
        real(*arguments)

    monkeypatch.setattr(bundles, "write_together", write_second_first)
    take(project, paths[0], revision)
    second()
    record = load_record(project.record_path(GUEST, "sums/add.py"))
    assert record is not None
    assert set(record.variants) == {"steps=1", "steps=2"}


def test_a_command_that_waits_for_another_says_so_once(
    project: Project, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(unfinished, "UNSAID_SECONDS", 0.2)

    def wait() -> None:
        with alone(project.root):
            pass

    with alone(project.root):
        waiting = threading.Thread(target=wait)
        waiting.start()
        waiting.join(0.5)
        assert waiting.is_alive()
    waiting.join()
    said = f"waiting for another command that puts files in place in {project.root}\n"
    assert capfd.readouterr().err == said


@pytest.mark.parametrize("title", ["NVIDIA H200, 141 GB", "2-core CPU, 24 GB", "A processor for tests"])
def test_what_a_machine_is_called_follows_from_what_it_is_and_who_measured(
    project: Project, tmp_path: Path, title: str
) -> None:
    bundle = bundle_of()
    bundle["machine"] |= {"title": title, "short": "H200"}
    import_bundles(project, [write(tmp_path / "bundle.json", packed(bundle))])
    table = json.loads((project.records / GUEST / "machine.json").read_text("utf-8"))
    assert (table["title"], table["short"]) == ("2-core CPU, 24 GB (Ada)", "CPU 2-core (Ada)")


def test_more_points_than_a_page_shows_are_refused(project: Project, tmp_path: Path) -> None:
    page = project.docs / "en/sums.md"
    charts = "\n".join(
        f"```chart\nscript: sums/add.py\nx: step\ny: total\ntitle: {title}\n```\n"
        for title in ("One", "Two", "Three", "Four")
    )
    write(page, page.read_text("utf-8").replace("`#!value sums/add.py#total`", "it") + "\n" + charts)
    bundle = bundle_of()
    for points, shown in ((1400, True), (1600, False)):
        for place, run in enumerate(variant(bundle)["runs"]):
            run["metrics"]["total"] = [place + step / 8 for step in range(points)]
        path = write(tmp_path / f"{points}.json", packed(bundle))
        if shown:
            import_bundles(project, [path])
            shutil.rmtree(project.records)
    shows = "with this the page shows 6400 cells of tables and points of pictures, and 6000 are the most"
    what = rf"with it, docs/en/sums.md:\d+: {shows}; there, show fewer"
    assert re.search(what, refusal(project, path))


def test_a_machine_more_than_pages_can_show_is_refused(
    project: Project, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    page = project.docs / "en/sums.md"
    write(page, page.read_text("utf-8") + "\n" + "\n\n".join(["`#!value sums/add.py#total`"] * 8))
    import_bundles(project, [write(tmp_path / "bundle.json", packed(bundle_of()))])
    path = write(tmp_path / "other.json", packed(renamed(later(bundle_of()), OTHER, "Bob")))
    most = len(list(page_references(page)))
    monkeypatch.setattr(specs, "MOST_PLACES_IN_ALL", 2 * most - 1)
    with pytest.raises(
        BenchbookError, match="fences, values, notes, links and marks, counted for each machine"
    ):
        import_bundles(project, [path])
    monkeypatch.setattr(specs, "MOST_PLACES_IN_ALL", 2 * most)
    import_bundles(project, [path])


def test_a_part_of_the_variants_of_a_machine_that_pages_would_show_first_is_refused(
    project: Project, tmp_path: Path
) -> None:
    write(project.snippets / "sums/add.py", SWEEP)
    edit(project.docs / "en/sums.md", "sums/add.py#total", "sums/add.py?steps=2#total")
    whole = renamed(bundle_of(SWEEP), OTHER, "Bob")
    import_bundles(project, [write(tmp_path / "whole.json", packed(whole))])
    part = bundle_of(SWEEP)
    del part["records"][0]["variants"]["steps=2"]
    for place, run in enumerate(part["records"][0]["variants"]["steps=1"]["runs"]):
        run["cells"]["add"]["seconds"] /= 2 + place / 1000
    with pytest.raises(BenchbookError, match=f"with it, .*steps=2#total` was never recorded on {GUEST}"):
        import_bundles(project, [write(tmp_path / "part.json", packed(part))])


def test_a_series_where_a_claim_compares_one_number_is_refused(project: Project, tmp_path: Path) -> None:
    page = project.docs / "en/sums.md"
    said = '```claim id="small"\nIt is less than ten.\n```'
    write(page, page.read_text("utf-8").replace("`#!value sums/add.py#total`", "it") + "\n" + said + "\n")
    claim = 'id = "small"\na = "sums/add.py#total"\nrelation = "less"\nb = 10\n'
    machines = 'machines = { "cpu-other" = "holds" }\n'
    write(project.snippets / "sums/claims.toml", f"[[claim]]\n{claim}{machines}")
    bundle = bundle_of()
    for run in variant(bundle)["runs"]:
        run["metrics"]["total"] = [6, 7]
    path = write(tmp_path / "bundle.json", packed(bundle))
    assert "with it, snippets/sums/claims.toml:3: `sums/add.py#total` is a series of 2" in refusal(
        project, path
    )
