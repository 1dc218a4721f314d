"""Put what a recording measured among the records of the checkout, or into one file to carry away."""

from __future__ import annotations

import gzip
import json
import zlib
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Protocol

from benchbook.content.machines import MachineDescription, machine_table, write_machine
from benchbook.content.problems import BenchbookError, Problem
from benchbook.content.project import Project
from benchbook.content.records import (
    LARGEST_BUNDLE,
    Campaign,
    Record,
    bundle_digest,
    load_record,
    read_packed,
    record_from,
    record_table,
    write_record,
    write_text,
)


class Store(Protocol):
    """Where records are looked up and put."""

    def load(self, script: str) -> Record | None:
        """What is known of "guide/script.py" on this machine."""

    def save(self, record: Record) -> str:
        """Put a record in place, whole; the name of the file, for messages."""


class Checkout:
    """`snippets/records/<machine>/` of a checkout."""

    def __init__(self, project: Project, machine: MachineDescription) -> None:
        self._project, self._machine = project, machine

    def load(self, script: str) -> Record | None:
        """What is known of "guide/script.py" on this machine."""
        path = self._project.record_path(self._machine.name, script)
        return load_record(path, self._project.relative(path))

    def save(self, record: Record) -> str:
        """Put a record in place, whole; the name of the file, for messages."""
        write_machine(self._project.records / self._machine.name / "machine.json", self._machine)
        path = self._project.record_path(self._machine.name, record.script)
        write_record(path, record)
        return self._project.relative(path)


class Bundle:
    """One file for `benchbook import`: `{"schema": 1, "digest": "...", "machine": {...}, "records": [...]}`.

    `machine` is what `machine.json` would hold, `records` what the record files would. Gzipped if its name
    ends so, written anew, atomically, with each script that is done: a bundle that was begun is gone on with.
    So are those of earlier campaigns in `begun`, whose records it takes over; of two of one script the one
    that more was measured for, and then the later.

    Raises:
        BenchbookError: The file is there and is something else, or of another machine.
    """

    def __init__(
        self, path: Path, checkout: Checkout, machine: MachineDescription, begun: Sequence[Path] = ()
    ) -> None:
        self._path, self._checkout, self._machine = path, checkout, machine
        named, records = self._begun(path)
        if named not in {"", machine.name}:
            what = f"holds records of {named}, not of {machine.name}"
            raise BenchbookError(Problem(path.name, 1, what, "name another file"))
        self._records = {record.script: record for record in records}
        for earlier in begun:
            named, records = self._begun(earlier)
            # What another machine measured is not part of this one's bundle.
            for record in records if named == machine.name else ():
                known = self._records.get(record.script)
                if known is None or _extent(record) > _extent(known):
                    self._records[record.script] = record

    def load(self, script: str) -> Record | None:
        """What is known of "guide/script.py" on this machine: by this bundle, else by the checkout."""
        return self._records.get(script) or self._checkout.load(script)

    def save(self, record: Record) -> str:
        """Put a record in place, whole; the name of the file, for messages."""
        self._records[record.script] = record
        machine = machine_table(self._machine)
        records = [record_table(each) for _, each in sorted(self._records.items())]
        table = {
            "schema": 1,
            "digest": bundle_digest(machine, records),
            "machine": machine,
            "records": records,
        }
        text = json.dumps(table, ensure_ascii=False, allow_nan=False)
        if self._path.name.endswith(".gz"):
            beside = self._path.with_name(f".{self._path.name}.part")
            self._path.parent.mkdir(parents=True, exist_ok=True)
            # No moment in the header: the same records make the same file.
            beside.write_bytes(gzip.compress(text.encode(), mtime=0))
            beside.replace(self._path)
        else:
            write_text(self._path, text + "\n")
        return self._path.name

    @staticmethod
    def _begun(path: Path) -> tuple[str, list[Record]]:
        """The name of the machine of a bundle and its records; empty where there is no such file."""
        try:
            table: dict[str, Any] = json.loads(read_packed(path, LARGEST_BUNDLE))
            return str(table["machine"]["name"]), [record_from(record) for record in table["records"]]
        except FileNotFoundError:
            return "", []
        except (OSError, EOFError, zlib.error, ValueError, KeyError, TypeError, AttributeError) as error:
            what = f"is there and is not a bundle ({error})"
            raise BenchbookError(Problem(path.name, 1, what, "name another file")) from error


def _extent(record: Record) -> tuple[int, str]:
    """How much was measured for a record, and when last."""
    moments = (campaign.finished for campaign in record.campaigns.values() if isinstance(campaign, Campaign))
    return len(record.variants), max(moments, default="")
