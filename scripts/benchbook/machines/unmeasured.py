"""Name a GPU that nothing was measured on, by the data sheets: predictions need no machine."""

from __future__ import annotations

import re
from typing import Any

from benchbook.machines.accelerators import VENDORS
from benchbook.machines.description import slug
from benchbook.machines.gpus import sheets

_NAME = re.compile(r"(?P<vendor>[a-z]+)-(?P<model>[a-z0-9-]+)-(?P<size>\d+)gb")


def described(name: str) -> dict[str, Any] | None:
    """What a machine.json would say of the GPU that the recorder calls `name`; None if no sheet knows it.

    Parameters:
        name: Vendor, model and memory, such as "nvidia-h200-141gb".
    """
    match = _NAME.fullmatch(name)
    kinds = {slug(vendor): (kind, vendor) for kind, vendor in VENDORS.items()}
    if match is None or match["vendor"] not in kinds:
        return None
    kind, vendor = kinds[match["vendor"]]
    size = int(match["size"])
    for sheet in sheets():
        made_by = f"{match['vendor']}.com/" in sheet.source
        if made_by and slug(sheet.model) == match["model"] and 0 < size <= sheet.memory_gb:
            # A smaller one of the same model has what its name says.
            memory = sheet.memory_bytes if size == sheet.memory_gb else size * 10**9
            accelerator = {
                "name": f"{vendor} {sheet.model}",
                "vendor": vendor,
                "memory_bytes": memory,
                "count": 1,
            }
            title = f"{vendor} {sheet.model}, {size} GB"
            return {
                "name": name,
                "kind": kind,
                "title": title,
                "short": sheet.model,
                "accelerator": accelerator,
            }
    return None


def examples() -> list[str]:
    """A name for each data sheet, for messages."""
    vendors = {slug(vendor) for vendor in VENDORS.values()}
    return sorted(
        f"{vendor}-{slug(sheet.model)}-{sheet.memory_gb}gb"
        for sheet in sheets()
        for vendor in vendors
        if f"{vendor}.com/" in sheet.source
    )
