"""Put what a recording measured among the records of the checkout, or into one file to carry away."""

from __future__ import annotations

import base64
import contextlib
import gzip
import json
import zlib
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, Protocol

from benchbook.content.formats import from_table, is_same, too_large
from benchbook.content.machines import (
    MachineDescription,
    description_here,
    differing_key,
    machine_table,
    text_over,
)
from benchbook.content.problems import BenchbookError, Problem
from benchbook.content.project import Project
from benchbook.content.records import (
    LARGEST_BUNDLE,
    Campaign,
    Record,
    bundle_digest,
    dump_record,
    load_record,
    read_packed,
    record_from,
    record_table,
    superseded_traces,
    trace_places,
    write_together,
    writing,
)
from benchbook.content.traces import ENDING, trace_digest
from benchbook.content.unfinished import changing_records

# What reading a file that is not a bundle can raise.
DAMAGE = (
    *(OSError, EOFError, zlib.error, RecursionError),
    *(ValueError, KeyError, TypeError, AttributeError),
)


OF_ITS_OWN = "record with `--recorded-by` and your name, or under another name with `--machine`"


class Store(Protocol):
    """Where records are looked up and put."""

    def held(self) -> contextlib.AbstractContextManager[None]:
        """Let nobody else change what is there, from what is read of it on to what is saved.

        Raises:
            BenchbookError: What another that was killed left to do cannot be done.
        """

    def hold_machine(self) -> None:
        """See that what is there is of this machine.

        Raises:
            BenchbookError: It is of another machine of the same name.
        """

    def tidy(self) -> None:
        """Remove traces of no record: a recording that is killed while it puts one in place leaves them.

        Raises:
            BenchbookError: A link to another place stands where records and traces lie.
        """

    def load(self, script: str) -> Record | None:
        """What is known of "guide/script.py" on this machine."""

    def save(self, record: Record, traces: Mapping[str, bytes] | None = None) -> str:
        """Put a record in place, whole, with its traces; the name of the file, for messages.

        Parameters:
            record: The record.
            traces: The files of its traces that are new, by their digest.

        Raises:
            UnwritableError: It cannot be written; what was there is as it was.
            BenchbookError: No file can hold this record; others can be written.
        """


class Checkout:
    """`snippets/records/<machine>/` of a checkout."""

    def __init__(self, project: Project, machine: MachineDescription) -> None:
        self._project, self._machine = project, machine

    @property
    def project(self) -> Project:
        """The checkout itself."""
        return self._project

    def held(self) -> contextlib.AbstractContextManager[None]:
        """Let nobody else change what is there, from what is read of it on to what is saved."""
        return changing_records(self._project)

    def hold_machine(self) -> None:
        """See that what is there is of this machine."""
        known = description_here(self._project, self._machine.name)
        if known is not None and (odd := differing_key(known, machine_table(self._machine))):
            path = self._project.records / self._machine.name / "machine.json"
            what = f"is of another machine than this (its {odd} differs)"
            raise BenchbookError(Problem(self._project.relative(path), 1, what, OF_ITS_OWN))

    def load(self, script: str) -> Record | None:
        """What is known of "guide/script.py" on this machine."""
        path = self._project.record_path(self._machine.name, script)
        return load_record(path, self._project.relative(path))

    def tidy(self) -> None:
        """Remove traces of no record; nothing behind a link."""
        machine = self._project.records / self._machine.name
        _refuse_links(self._project, (machine, *machine.rglob("*")))
        for folder in sorted(machine.glob("*/*/")):
            path = folder.with_suffix(".json")
            try:
                record = load_record(path)
            except BenchbookError:
                continue  # whose its traces are, nobody can tell until it is restored
            held = {place.name for place in trace_places(self._project, record)} if record else set()
            for stray in sorted(place for place in folder.iterdir() if place.name not in held):
                if ENDING in stray.name and stray.is_file():
                    with writing(self._project.relative(stray)):
                        stray.unlink()

    def save(self, record: Record, traces: Mapping[str, bytes] | None = None) -> str:
        """Put a record in place, whole, with its traces; the name of the file, for messages."""
        path = self._project.record_path(self._machine.name, record.script)
        described = self._project.records / self._machine.name / "machine.json"
        with writing(self._project.relative(path)):
            # A machine without a record would be a half of what was to be written.
            texts = {described: text_over(described, self._machine), path: _text_of(record)}
            places, new = trace_places(self._project, record), traces or {}
            # What a record names is there before it, and what it names no more goes after it.
            contents: dict[Path, bytes | None] = {
                **{place: new[digest] for place, digest in places.items() if digest in new},
                **{place: text.encode() for place, text in texts.items()},
                **dict.fromkeys(superseded_traces(self._project, record)),
            }
            _refuse_links(self._project, contents)
            write_together(contents, self._project.root)
        return self._project.relative(path)


def _refuse_links(project: Project, places: Iterable[Path]) -> None:
    """Raise BenchbookError where a link stands on the way to one of some places."""
    if links := project.links_above(places):
        raise BenchbookError(*links)


def _text_of(record: Record) -> str:
    """What the file of a record holds.

    Raises:
        BenchbookError: It could not be read again; the journal still can.
    """
    text = dump_record(record)
    if (why := too_large(text.encode())) is not None:
        what = f"no record can hold what its runs yield: {why}"
        fix = "let it yield fewer points or variants, and record it again"
        raise BenchbookError(Problem(f"snippets/{record.script}", 1, what, fix))
    return text


class Bundle:
    """One file for `benchbook import`: `{"schema": 1, "digest": "...", "machine": {...}, "records": [...]}`.

    `machine` is what `machine.json` would hold, `records` what the record files would; where records name
    traces, `traces` holds their files in base64, by their digest. Gzipped if its name
    ends so, written anew, atomically, with each script that is done: a bundle that was begun is gone on with.
    Of those of earlier campaigns in `begun` it takes over the records that it lacks, of two of one script the
    one that was measured last; what they hold besides is told in `left_out`, a line for each record.

    Raises:
        BenchbookError: The file is there and is something else, a link, or of another machine; or one of
            `begun` is not there.
    """

    def __init__(
        self, path: Path, checkout: Checkout, machine: MachineDescription, begun: Sequence[Path] = ()
    ) -> None:
        if path.is_symlink():
            what = "is a link to another place"
            raise BenchbookError(Problem(path.name, 1, what, "name the file that it leads to"))
        self._path, self._checkout, self._machine = path, checkout, machine
        self._project = checkout.project
        described, records, traces = self._begun(path)
        if described and described["name"] != machine.name:
            what = f"holds records of {described['name']}, not of {machine.name}"
            raise BenchbookError(Problem(path.name, 1, what, "name another file"))
        self._described = described
        self._records = {record.script: record for record in records}
        self._traces = traces
        self.left_out: list[str] = []
        own = set(self._records)
        for earlier in begun:
            described, records, traces = self._begun(earlier)
            if not described:
                what = "is not there, and was to be gone on with"
                raise BenchbookError(Problem(str(earlier), 1, what, "name a bundle that `record` wrote"))
            # What another machine measured is not part of this one's bundle.
            same = described.get("name") == machine.name and not self._differing(described)
            self._traces |= traces if same else {}
            for record in records if same else ():
                stays, goes = self._records.get(record.script, record), record
                if record.script not in own and _measured_last(record) > _measured_last(stays):
                    stays, goes = record, stays
                self._records[record.script] = stays
                if not all(is_same(stays.variants.get(name), one) for name, one in goes.variants.items()):
                    ended, kept = (_measured_last(one)[0] for one in (goes, stays))
                    what = f"left out of {path.name}: {record.script} as it was measured until {ended}"
                    self.left_out.append(f"{what}, for what was measured until {kept}")

    def held(self) -> contextlib.AbstractContextManager[None]:
        """A bundle is its recording's own (`only_recording`)."""
        return contextlib.nullcontext()

    def load(self, script: str) -> Record | None:
        """What is known of "guide/script.py" on this machine: by this bundle, else by the checkout."""
        return self._records.get(script) or self._checkout.load(script)

    def tidy(self) -> None:
        """A bundle holds the traces of its records alone."""

    def save(self, record: Record, traces: Mapping[str, bytes] | None = None) -> str:
        """Put a record in place, whole, with its traces; the name of the file, for messages."""
        with writing(self._project.relative(self._project.record_path(self._machine.name, record.script))):
            # One that no file can hold is kept out, or it would be in the way of those after it.
            _text_of(record)
        records = self._records | {record.script: record}
        self._traces |= traces or {}
        content = self._content(records)
        self._records = records
        with writing(self._path.name):
            write_together({self._path: content})
        return self._path.name

    def _content(self, records: Mapping[str, Record]) -> bytes:
        """What the file holds with these records, by their scripts.

        Raises:
            BenchbookError: It would be larger than what can be read, or a trace is lost.
        """
        machine = machine_table(self._machine)
        tables = [record_table(each) for _, each in sorted(records.items())]
        table = {
            "schema": 1,
            "digest": bundle_digest(machine, tables),
            "machine": machine,
            "records": tables,
        }
        if packed_traces := self._packed_traces(records.values()):
            table["traces"] = packed_traces
        content = json.dumps(table, ensure_ascii=False, allow_nan=False).encode() + b"\n"
        if len(content) > LARGEST_BUNDLE:
            what = f"would be larger than {LARGEST_BUNDLE >> 20} MiB"
            raise BenchbookError(Problem(self._path.name, 1, what, "name another file, and record it again"))
        # No moment in the header: the same records make the same file.
        return gzip.compress(content, mtime=0) if self._path.name.endswith(".gz") else content

    def hold_machine(self) -> None:
        """See that what is there is of this machine; the records of the checkout, too."""
        if odd := self._differing(self._described):
            what = f"holds records of another machine than this (its {odd} differs)"
            raise BenchbookError(Problem(self._path.name, 1, what, "name another file"))
        self._checkout.hold_machine()

    def _packed_traces(self, records: Iterable[Record]) -> dict[str, str]:
        """The traces of records in base64, by their digest; of variants that were here, from the checkout."""
        found = {}
        for record in records:
            for place, digest in trace_places(self._project, record).items():
                if digest not in self._traces:
                    try:
                        self._traces[digest] = place.read_bytes()
                    except OSError as error:
                        what = f"cannot be read ({error.strerror or error}), and its record names it"
                        fix = "restore the file, or record the script again with `--all`"
                        raise BenchbookError(Problem(self._project.relative(place), 1, what, fix)) from error
                found[digest] = base64.b64encode(self._traces[digest]).decode("ascii")
        return dict(sorted(found.items()))

    def _differing(self, described: Mapping[str, Any]) -> str | None:
        """In what the machine of a bundle is not this one."""
        return differing_key(described, machine_table(self._machine)) if described else None

    @staticmethod
    def _begun(path: Path) -> tuple[dict[str, Any], list[Record], dict[str, bytes]]:
        """The machine of a bundle, its records and their traces; empty where there is no such file."""
        try:
            table: dict[str, Any] = json.loads(read_packed(path, LARGEST_BUNDLE))
            machine = machine_table(from_table(MachineDescription, table["machine"]))
            records = [record_from(record) for record in table["records"]]
            damaged = table["digest"] != bundle_digest(table["machine"], table["records"])
            traces = {name: base64.b64decode(text) for name, text in table.get("traces", {}).items()}
            damaged |= any(trace_digest(packed) != digest for digest, packed in traces.items())
        except FileNotFoundError:
            return {}, [], {}
        except DAMAGE as error:
            what = f"is there and is not a bundle ({error})"
            raise BenchbookError(Problem(path.name, 1, what, "name another file")) from error
        if damaged:
            # A new digest would vouch for what nobody measured.
            what = "was changed since it was written: its digest is of other content"
            raise BenchbookError(Problem(path.name, 1, what, "name another file"))
        return machine, records, traces


def _measured_last(record: Record) -> tuple[str, int]:
    """When something was measured last for a record, and of how many variants it is."""
    moments = (campaign.finished for campaign in record.campaigns.values() if isinstance(campaign, Campaign))
    return max(moments, default=""), len(record.variants)
