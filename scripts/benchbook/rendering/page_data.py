"""What a page fetches once a reader chooses a machine or asks where a number is from, by machine.

All of it is HTML, made here by what makes the page's own: a script only puts it in its place. A file holds

    blocks   by the key of a block (`data-bb`): what the machine changes in it, its parts by `data-part`
    values   by the key of a value: its inside, the line and the rows of its details, the key of its origin
    facts    by the key of a block: rows of its details that its origin does not have
    origins  by key (`data-origin`): the other rows of the details

What the page shows of the machine itself has no parts here. `ROOT` stands for the way to the site's root.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

FOLDER = "assets/data"


def data_folder(page: str, language: str) -> str:
    """Where the files of `page` in `language` lie, from the root of the site, with its slash."""
    return f"{FOLDER}/{page}/{language}/"


def data_files(page: str, language: str, data: Mapping[str, Mapping[str, Any]]) -> dict[str, str]:
    """The files of a page by their path below `FOLDER`.

    Parameters:
        page: Its file within its language, without the ending.
        language: The language of its text.
        data: By machine and section, JSON by key.
    """
    return {
        f"{page}/{language}/{machine}.json": _text(sections) for machine, sections in sorted(data.items())
    }


def _text(sections: Mapping[str, Any]) -> str:
    return json.dumps(sections, ensure_ascii=False, separators=(",", ":"), sort_keys=True) + "\n"
