"""What a machine is called in a language: by its own name, or in words where it is a CPU without one."""

from __future__ import annotations

import re

from benchbook.languages.formatting import NO_BREAK_SPACE
from benchbook.languages.language import Language
from benchbook.query.library import Machine

# What the recorder calls a CPU machine, in a sentence and beside a number.
_TITLE = re.compile(r"(\d+)-core CPU(?:, (\d+) GB)?")
_SHORT = re.compile(r"CPU (\d+)-core")


def machine_title(machine: Machine, language: Language) -> str:
    """What `machine` is called in a sentence: "2-core CPU, 24 GB"."""
    found = _TITLE.fullmatch(machine.title)
    if found is None:
        return machine.title
    cores = language.text("cpu_cores", n=int(found[1]))
    size = f"{language.text('comma')}{language.isolated(f'{found[2]}{NO_BREAK_SPACE}GB')}" if found[2] else ""
    return f"{cores}{size}"


def marked_title(machine: Machine, language: Language) -> str:
    """The same, with a mark where nothing was measured here: "NVIDIA V100, 16 GB (published)"."""
    title = machine_title(machine, language)
    if machine.measured and not machine.published:
        return title
    remark = "published" if machine.published else "predicted"
    return language.text("with_remark", text=title, remark=language.text(remark))


def machine_short(machine: Machine, language: Language) -> str:
    """What `machine` is called beside a number: "H200", "2-core CPU"."""
    found = _SHORT.fullmatch(machine.short)
    return machine.short if found is None else language.text("cpu_cores", n=int(found[1]))
