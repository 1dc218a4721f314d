"""The ends of a text that is read as Markdown: parsers look from every bracket anew for what closes it."""

from __future__ import annotations

from collections.abc import Iterator

from benchbook.content.problems import Problem
from benchbook.content.project import Project

# Six times the longest page, fifteen times the longest line, some ten times what any paragraph opens.
MOST_BYTES = 500_000
LONGEST_LINE = 20_000
MOST_BRACKETS = 1000
# No paragraph here has more than two open at once.
MOST_OPEN = 100
_PAIRS = (("[", "]"), ("(", ")"), ("<", ">"))


def unreadable_pages(project: Project) -> Iterator[Problem]:
    """Pages that no parser may read, for it would take minutes; each is named once."""
    for path in project.page_paths():
        shown = project.relative(path)
        if (size := path.stat().st_size) > MOST_BYTES:
            what = f"has {size} bytes, and a page has at most {MOST_BYTES}"
            yield Problem(shown, 1, what, "make several pages of it")
            continue
        try:
            found = endless(path.read_text("utf-8"))
        except UnicodeDecodeError as error:
            yield Problem(shown, 1, f"is not UTF-8 ({error.reason})", "save it as UTF-8")
            continue
        if found is not None:
            yield Problem(shown, *found)


def endless(text: str) -> tuple[int, str, str] | None:
    """Where a text goes beyond what is read as Markdown: the first line, what is wrong, and the fix."""
    opened: dict[str, list[int]] = {}
    for number, line in enumerate(text.splitlines(), 1):
        if len(line) > LONGEST_LINE:
            what = f"the line has {len(line)} characters, and {LONGEST_LINE} are the most"
            return number, what, "break it, or say it in fewer words"
        if not line.strip():
            opened = {}
            continue
        for begin, end in _PAIRS:
            if begin not in line and begin not in opened:
                continue
            # How many of this paragraph there are, and are open.
            count = opened.setdefault(begin, [0, 0])
            for sign in line:
                if sign == begin:
                    count[0] += 1
                    count[1] += 1
                elif sign == end and count[1]:
                    count[1] -= 1
                if count[0] > MOST_BRACKETS or count[1] > MOST_OPEN:
                    which = f"{MOST_OPEN} `{begin}` that nothing closes"
                    which = which if count[1] > MOST_OPEN else f"{MOST_BRACKETS} `{begin}`"
                    what = f"the paragraph has more than {which}, which parsers take minutes over"
                    return (
                        number,
                        what,
                        f"close each `{begin}`, or part the text by blank lines",
                    )
    return None
