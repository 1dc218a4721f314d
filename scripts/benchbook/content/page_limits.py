"""The ends of a text that is read as Markdown: what parsers take minutes over, or give up at, is not parsed.

They look from every bracket anew for what closes it, compare each heading with all before it, and call
themselves for whatever stands in something else.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import lru_cache

from benchbook.content.fence_names import FENCES
from benchbook.content.problems import Problem
from benchbook.content.project import Project

# Nearly three times the longest page, in bytes and in lines, three times the longest line.
MOST_BYTES = 250_000
MOST_LINES = 4000
LONGEST_LINE = 4000
# Three times the longest: what stands between two marks is looked for among all of a paragraph, mark by mark.
LONGEST_PARAGRAPH = 8000
# Some ten times what any paragraph opens.
MOST_SIGNS = 1000
# No paragraph here has more than two open at once.
MOST_OPEN = 100
# And how many all its paragraphs leave open together: ten times what any page does, for a raw tag that
# nothing closes is looked for up to the end of the page.
MOST_LEFT_OPEN = 300
# What one page has at most: of fences four times what the page with most has, for each is drawn anew, in some
# six kilobytes; of headings six times, for each is compared with all before it; of marks of code, among them
# those of values, nine times.
MOST_FENCES = 400
MOST_HEADINGS = 300
MOST_MARKS = 5000
# And of `<`, each of which may begin a tag, and of marks of emphasis.
MOST_TAGS = 1000
MOST_EMPHASIS = 20_000
# Of raw tags that hold Markdown, each may stand in the one before: far more than any page has.
MOST_HOLDING = 100
# How long one mark of code is at most (three is a fence), and into how many cells one line of a table is cut,
# five times what any has here: a row that is shorter is filled up, and each cell bears its column's name.
LONGEST_MARK = 20
MOST_CELLS = 30
# Five times as far as any line here is indented, and a tenth of what parsers follow before they give up.
DEEPEST = 60
# How many characters stand behind the brackets of a page in their paragraphs, bracket by bracket: nearly
# thirty times what any page has. Python-Markdown takes two seconds over a million, whatever seems to close
# the brackets.
MOST_LOOKED_THROUGH = 1_000_000
_BRACKET = "["
_HOLDING = re.compile(r"<\w[^<>]*\smarkdown[\s=>/]", re.IGNORECASE)
# What begins or ends emphasis: each is compared with all before it.
_EMPHASIS = "*_"
_PAIRS = (("[", "]"), ("(", ")"), ("<", ">"), ("&", ";"), ("{", "}"))
_MARK = "`"
# What a line stands in (lists, quotations, indented blocks), and what it is there; rules count as headings.
_WITHIN = re.compile(r"(?:[ \t>]|(?:[-+*]|\d+[.)])(?=[ \t]))*")
_FENCE = re.compile(r"`{3}|~{3}")
_HEADING = re.compile(r"#|=+\s*\Z|-+\s*\Z|<h[1-6]\b", re.IGNORECASE)
# The language that code is highlighted in, as `pymdownx.superfences` and `pymdownx.inlinehilite` read it: of
# what they hand to Pygments, many a lexer looks at each character as often as there are characters.
_LANGUAGE = re.compile(r"(?:`{3,}|~{3,})[ \t]*(\{|[\w#.+-]+)[^`]*\Z")
_INLINE_LANGUAGE = re.compile(r"`(?::{3,}|#!)([\w#.+-]*)(?:\s|\Z)")
# And that of Bash looks for the end of these again and again: twice as long for each letter, without one.
# What reads HTML gives up where a marked section begins.
_UNENDED = re.compile(r"\$'|<<|<!\[")
LANGUAGES = ("bash", "diff", "json", "python", "text")
_HIGHLIGHTED = frozenset((*FENCES, *LANGUAGES))
# What plugins of MkDocs break a line at and Markdown does not, and what Python-Markdown marks places by:
# control characters but for tabs and the ends of lines, and what parts lines and paragraphs.
_CONTROL = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\u2028\u2029]")
# What stands for a value.
_INLINE = "value"
_MARKS = re.compile(r"`+")
_LONG_MARK = re.compile(rf"`{{{LONGEST_MARK + 1},}}|~{{{LONGEST_MARK + 1},}}")
_SHORTEN = "make several pages of it"
_NEST_LESS = "nest lists, quotations and blocks less deeply"

# The first line that goes too far, what is wrong with it, and the fix.
Refusal = tuple[int, str, str]


def unreadable_pages(project: Project) -> Iterator[Problem]:
    """Pages that no parser may read, for it would take minutes; each is named once."""
    for path in project.page_paths():
        shown = project.relative(path)
        if (size := path.stat().st_size) > MOST_BYTES:
            what = f"has {size} bytes, and a page has at most {MOST_BYTES}"
            yield Problem(shown, 1, what, _SHORTEN)
            continue
        try:
            found = _endless_page(path.read_text("utf-8"))
        except UnicodeDecodeError as error:
            yield Problem(shown, 1, f"is not UTF-8 ({error.reason})", "save it as UTF-8")
            continue
        if found is not None:
            yield Problem(shown, *found)


def is_readable(text: str) -> bool:
    """Whether parsers read a text in good time: an earlier one of a page need never have passed a check."""
    return len(text) <= MOST_BYTES and endless(text) is None


def too_deep(path: str) -> Problem:
    """What to say of a page, called `path`, in which a parser ran out of its stack all the same."""
    return Problem(path, 1, "nests deeper than parsers follow", _NEST_LESS)


def endless(text: str) -> Refusal | None:
    """Where a text goes beyond what is read as Markdown."""
    # As Markdown breaks them, and nowhere else.
    lines = text.replace("\r\n", "\n").replace("\r", "\n").removesuffix("\n").split("\n")
    if len(lines) > MOST_LINES:
        return MOST_LINES + 1, f"the text has {len(lines)} lines, and {MOST_LINES} are the most", _SHORTEN
    for number, line in enumerate(lines, 1):
        if found := _CONTROL.search(line):
            what = f"the line holds U+{ord(found[0]):04X}, which parsers read differently"
            return number, what, "remove it"
        if len(line) > LONGEST_LINE:
            what = f"the line has {len(line)} characters, and {LONGEST_LINE} are the most"
            return number, what, "break it, or say it in fewer words"
        depth = len(_within(line).expandtabs(4)) if line.strip() else 0
        if depth > DEEPEST:
            what = f"the line begins {depth} characters deep in blocks, and {DEEPEST} are the most"
            return number, what, _NEST_LESS
        if _LONG_MARK.search(line):
            return number, f"a mark of code has at most {LONGEST_MARK} characters", "shorten it"
        if (found := _LANGUAGE.match(line[len(_within(line)) :])) and found[1] not in _HIGHLIGHTED:
            what = f"code begins with `{found[1]}`, and is none of {', '.join(LANGUAGES)}"
            return number, what, "call it `text` where none of these is its language"
        if found := _UNENDED.search(line):
            what = f"`{found[0]}` is on no page: what highlights or reads it may take minutes, or give up"
            return number, what, "write the command with other quotes, or with a file; a sign as `&lt;`"
        if any(name != _INLINE for name in _INLINE_LANGUAGE.findall(line)):
            return number, "code in a line has a language", "remove what stands before the code"
        if line.count("|") > MOST_CELLS:
            what = f"the line has {line.count('|')} `|`, and {MOST_CELLS} are the most"
            return number, what, "give the table fewer columns"
    return _endless_paragraph(lines) or _too_many(lines) or _too_many_holding(text)


# Each save of a served page looks at all of them.
_endless_page = lru_cache(maxsize=256)(endless)


def _within(line: str) -> str:
    found = _WITHIN.match(line)
    return found[0] if found else ""


def _too_many(lines: list[str]) -> Refusal | None:
    """Where a page has more than one has of what is drawn, compared or looked for anew each time."""
    fences = headings = marks = tags = emphasis = 0
    for number, line in enumerate(lines, 1):
        said = line[len(_within(line)) :]
        # Each fence has two lines.
        fences += _FENCE.match(said) is not None
        headings += _HEADING.match(said) is not None
        marks += len(_MARKS.findall(line)) if _MARK in line else 0
        tags += line.count("<")
        emphasis += sum(map(line.count, _EMPHASIS))
        for count, most, what in (
            (fences, 2 * MOST_FENCES, f"{MOST_FENCES} fences"),
            (headings, MOST_HEADINGS, f"{MOST_HEADINGS} headings"),
            (marks, MOST_MARKS, f"{MOST_MARKS} marks of code"),
            (tags, MOST_TAGS, f"{MOST_TAGS} `<`"),
            (emphasis, MOST_EMPHASIS, f"{MOST_EMPHASIS} `*` and `_`"),
        ):
            if count > most:
                return number, f"the text has more than {what}", _SHORTEN
    return None


def _too_many_holding(text: str) -> Refusal | None:
    """Where raw tags that hold Markdown may stand in each other deeper than parsers follow."""
    for count, tag in enumerate(_HOLDING.finditer(text)):
        if count == MOST_HOLDING:
            what = f"the text has more than {MOST_HOLDING} tags that hold Markdown"
            return text.count("\n", 0, tag.start()) + 1, what, _NEST_LESS
    return None


def _endless_paragraph(lines: list[str]) -> Refusal | None:
    """Where a paragraph is longer than one is, or opens more than parsers find the ends of."""
    opened: dict[str, list[int]] = {}
    length = brackets = emphasis = looked_through = 0
    # By all paragraphs before this one.
    left: dict[str, int] = {}
    for number, line in enumerate(lines, 1):
        # What else is not seen, such as a no-break space, parts no paragraph.
        if not line.strip(" \t"):
            for begin, (_, still) in opened.items():
                left[begin] = left.get(begin, 0) + still
            opened, length, brackets, emphasis = {}, 0, 0, 0
            continue
        length += len(line)
        emphasis += sum(map(line.count, _EMPHASIS))
        if emphasis > MOST_SIGNS:
            what = f"the paragraph has more than {MOST_SIGNS} `*` and `_`, which parsers take minutes over"
            return number, what, "part it by blank lines, or write less of it in italics and bold"
        looked_through += brackets * len(line)
        if _BRACKET in line:
            places = [place for place, sign in enumerate(line) if sign == _BRACKET]
            brackets += len(places)
            looked_through += len(places) * len(line) - sum(places)
        if length > LONGEST_PARAGRAPH:
            what = f"the paragraph has more than {LONGEST_PARAGRAPH} characters"
            return number, what, "part it by blank lines, or say it in fewer words"
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
                if count[0] > MOST_SIGNS or count[1] > MOST_OPEN:
                    which = f"{MOST_OPEN} `{begin}` that nothing closes"
                    which = which if count[1] > MOST_OPEN else f"{MOST_SIGNS} `{begin}`"
                    what = f"the paragraph has more than {which}, which parsers take minutes over"
                    return (
                        number,
                        what,
                        f"close each `{begin}`, or part the text by blank lines",
                    )
            if left.get(begin, 0) + count[1] > MOST_LEFT_OPEN:
                what = f"the text has more than {MOST_LEFT_OPEN} `{begin}` that nothing closes"
                return number, what, f"close each `{begin}`, or write it as code"
        if looked_through > MOST_LOOKED_THROUGH:
            what = f"the text has too many `{_BRACKET}` in long paragraphs, which parsers take minutes over"
            return number, what, f"part them by blank lines, or leave out `{_BRACKET}`"
    return None
