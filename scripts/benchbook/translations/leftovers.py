"""Find what belongs on no page: confusable characters, syntax of other tools, text left in English."""

from __future__ import annotations

import re
import statistics
import unicodedata
from collections.abc import Collection, Iterable, Iterator, Sequence
from urllib.parse import urlsplit

from markdown_it.token import Token

from benchbook.content.fence_names import CLAIM, FENCES
from benchbook.content.page_limits import too_deep
from benchbook.content.page_source import CODE_SPAN, PageSource, fence_name
from benchbook.content.problems import Problem, did_you_mean
from benchbook.content.readings import differences, html_items, page_items, site_reading, unseen_problems
from benchbook.content.safe_html import (
    FRONT_MATTER,
    LONGEST_SYNONYM,
    LONGEST_TITLE,
    MOST_SYNONYMS,
    SLOT,
    WRITE_MARKDOWN,
    holds_markup,
    places_in,
    unsafe_address,
    unsafe_attribute,
    unsafe_class,
    unsafe_id,
    unsafe_parts,
    unsafe_words,
)
from benchbook.languages.telling import added_words
from benchbook.translations.characters import INVISIBLE
from benchbook.translations.front_matter import front_matter_lines, line_of_entry
from benchbook.translations.names import is_proper_name
from benchbook.translations.sections import Section, TextRun, lines_for_readers
from benchbook.translations.settings import Rules, words_of

# Punctuation of other scripts, quotation marks that Python does not read, and what cannot be seen.
_CONFUSABLE = frozenset(
    "\u060c\u061b\u061f\u066a\u066b\u066c\u2018\u2019\u201c\u201d\u2013\u2014\u2212\u00a0\u00ad"
)
# What stands where an address does.
_ADDRESS = re.compile(r"(?:\]\(|^ {0,3}\[[^\]]+\]:|<)\s*<?([^\s)>]*)")
_AUTOLINK = re.compile(r"<[A-Za-z][A-Za-z0-9+.-]*:[^\s<>]*>")
# Where lists of attributes stand, whose texts in quotes may hold braces, and the names in them.
_ATTRIBUTES = re.compile(r"\{[^\n]*\}")
_ATTRIBUTE = re.compile(r"(?<![^\s=}])([^\s=}]++)=")
_NAMED = re.compile(r"(?<!\S)[:{]*([.#])([^\s{}=]+)(?![^\s{}]*=)")
# What pages do without, and what the other parser finds in places where this one does not.
_REFERENCE = re.compile(r"[\s>]*(?:(?:[-*+]|\d+[.)])\s+)*(\[[^\]]*\]:)")
_FOOTNOTE = re.compile(r"\[\^[^\]\s]+\]")
# Directives, alerts, shortcodes and components of other tools, which reach the reader as they stand.
_FOREIGN = re.compile(r"\[\[[\w-]+\]\]|\[!\w+\]|^:::\s*\w*|\{\{.*?\}\}|\{%.*?%\}|</?[A-Z]\w*[\s/>]")
# A role of reStructuredText stands before its code span.
_ROLE = re.compile(r":[a-z][a-z:]*:$")
# What MkDocs takes for the end of the front matter.
_END = re.compile(r"(?:\.{3}|-{3})[ \t]*\Z")
_PYTHON = frozenset({"python", "py", "python3", "pycon", "ipython"})


def code_problems(page: PageSource, path: str) -> Iterator[Problem]:
    """Characters inside code that look like others or like nothing, and code that nothing runs."""
    for token in page.tokens:
        line = token.map[0] + 1 if token.map else 1
        if token.type in ("fence", "code_block"):
            words = {line + place for place in lines_for_readers(token.info, token.content)}
            first = line + (token.type == "fence")
            for number, text in enumerate(token.content.splitlines(), start=first):
                if number not in words:
                    yield from _confusables(text, number, path)
            if token.info.strip().partition(" ")[0].lower() in _PYTHON:
                fix = "put it into a script and show its cell with a `cell` fence"
                yield Problem(path, line, "holds code that nothing runs", fix)
        for child in token.children or ():
            if child.type in ("softbreak", "hardbreak"):
                line += 1
            elif child.type == "code_inline":
                yield from _confusables(child.content, line, path)


def foreign_problems(section: Section, path: str) -> Iterator[Problem]:
    """What runs or leads astray, and syntax of other tools, which would be printed as it stands."""
    for token in section.tokens:
        line = token.map[0] + 1 if token.map else section.line
        if token.type == "html_block":
            yield from _unsafe_html(token.content, line, path)
        elif token.type == "inline":
            yield from _unsafe_text(token.content, line, path)
        for place, child in enumerate(token.children or ()):
            if child.type in ("softbreak", "hardbreak"):
                line += 1
            elif child.type == "text":
                after = (token.children or [])[place + 1 : place + 3]
                yield from _foreign_text(child.content, after, line, path)


def chatter_problems(section: Section, phrases: Iterable[str], path: str) -> Iterator[Problem]:
    """What a translation tool says of its own work."""
    for unit in section.units:
        said = unit.prose.casefold()
        for phrase in phrases:
            if phrase.casefold() in said:
                line = unit.line_at(said.index(phrase.casefold()))
                yield Problem(
                    path, line, f"“{phrase}” speaks of the translation, not of the matter", "remove it"
                )


def file_problems(text: str, path: str) -> Iterator[Problem]:
    """Marks of a careless editor: no newline at the end, white space at the end of a line."""
    if text and not text.endswith("\n"):
        yield Problem(path, text.count("\n") + 1, "does not end with a newline", "add one")
    for number, line in enumerate(text.split("\n"), start=1):
        if line != line.rstrip():
            yield Problem(
                path, number, "ends in white space", "remove it; end a line with `<br>` to break it"
            )
    if text.startswith("\ufeff"):
        yield Problem(path, 1, "begins with a byte order mark", "remove it")


def syntax_problems(page: PageSource, text: str, path: str) -> Iterator[Problem]:
    """Footnotes, and addresses that stand apart from their links: the two parsers find other ones."""
    code = {
        number
        for token in page.tokens
        if token.map and token.type in ("fence", "code_block") and fence_name(token) != CLAIM
        for number in range(*token.map)
    }
    for number, line in enumerate(text.split("\n")[front_matter_lines(text) :], front_matter_lines(text)):
        if number in code:
            continue
        if found := _FOOTNOTE.search(CODE_SPAN.sub("", line)):
            yield Problem(
                path, number + 1, f"`{found[0]}` is a footnote", "say it in the text, or leave it out"
            )
        elif found := _REFERENCE.match(line):
            fix = "write the address into the link, `[words](address)`; put `\\` before a bracket that is one"
            yield Problem(path, number + 1, f"`{found[1]}` is an address apart from its link", fix)


def reading_problems(page: PageSource, text: str, path: str, known: Collection[Problem]) -> Iterator[Problem]:
    """Where readers would see something else than what is checked, and what of it no page may hold.

    Parameters:
        page: The page.
        text: Its file.
        path: For messages.
        known: What is wrong with the page besides.
    """
    # Loads a library that only pages need.
    from benchbook.content.cleaning import clean

    try:
        html, slots = site_reading(text)
    except RecursionError:
        yield too_deep(path)
        return
    yield from differences(page_items(page), html_items(clean(html), slots), path)
    places = places_in(html)
    yield from unseen_problems(places, slots, text, path)
    said = {problem.what for problem in known}
    lines = text.lower().split("\n")
    forged = [f"{SLOT}="] if any(place not in slots for place in places) else []
    for what in dict.fromkeys([*(what for _, what in unsafe_parts(html)), *forged]):
        if unsafe_words(what) not in said:
            sought = what.strip("<>=.#")
            line = next((number for number, one in enumerate(lines, 1) if sought in one), 1)
            yield Problem(path, line, unsafe_words(what), WRITE_MARKDOWN)


def _confusables(text: str, line: int, path: str) -> Iterator[Problem]:
    for letter in dict.fromkeys(text):
        code = ord(letter)
        hidden = unicodedata.category(letter) == "Cf" or INVISIBLE.match(letter) is not None
        if letter in _CONFUSABLE or hidden or 0x3000 <= code <= 0x3002 or 0xFF01 <= code <= 0xFF5E:
            name = unicodedata.name(letter, "a control character").lower()
            what = f"code holds U+{code:04X} ({name})"
            yield Problem(path, line, what, "write the ASCII character that is meant, or remove it")


def front_matter_problems(page: PageSource, text: str, path: str) -> Iterator[Problem]:
    """Markup in the head of a page, whose texts stand in attributes and in the HTML's head, and its end."""
    for number, line in enumerate(text.split("\n")[1 : front_matter_lines(text) - 1], start=2):
        if _END.match(line):
            what = f"`{line.rstrip()}` ends the front matter for MkDocs, and what follows is text"
            yield Problem(path, number, what, "end it with `---`, once, and indent what a text holds")
    for key, value in page.front_matter.items():
        if key not in FRONT_MATTER:
            what = f"its front matter has the unknown key `{key}`"
            yield Problem(
                path, line_of_entry(str(key), text), what, did_you_mean(str(key), FRONT_MATTER, "key")
            )
            continue
        is_text = isinstance(value, str) and any(map(str.isalpha, value))
        if key in ("title", "description") and not is_text:
            yield Problem(path, line_of_entry(key, text), f"`{key}:` is not text", "write it in words")
        elif key in ("title", "description") and len(value) > LONGEST_TITLE:
            what = f"`{key}:` has {len(value)} characters, and {LONGEST_TITLE} are the most"
            yield Problem(path, line_of_entry(key, text), what, "say it in fewer words")
        if key == "synonyms" and (wrong := _odd_synonyms(value)):
            fix = f"write {MOST_SYNONYMS} at most, of {LONGEST_SYNONYM} characters each"
            yield Problem(path, line_of_entry(key, text), f"`synonyms:` {wrong}", fix)
        if key == "draft" and not isinstance(value, bool):
            yield Problem(
                path, line_of_entry(key, text), "`draft:` is no yes or no", "write `true`, or no line"
            )
        for one in value if isinstance(value, list) else [value]:
            if isinstance(one, str) and (holds_markup(one) or unsafe_address(one)):
                what = f"`{key}:` holds markup or an address, and is plain text"
                yield Problem(path, line_of_entry(key, text), what, "write it in words")


def _odd_synonyms(value: object) -> str | None:
    """What `synonyms:` is in place of a list of words; None if it is one."""
    if not isinstance(value, list) or not all(isinstance(one, str) for one in value):
        return "is no list of words"
    if len(value) > MOST_SYNONYMS:
        return f"has {len(value)} entries"
    longest = max(map(len, value), default=0)
    return f"has an entry of {longest} characters" if longest > LONGEST_SYNONYM else None


def preamble_problems(page: PageSource, path: str) -> Iterator[Problem]:
    """What stands above the first heading: it belongs to no section, which everything else is checked by."""
    first = next((token for token in page.tokens if token.map is not None), None)
    if first is not None and first.type != "heading_open":
        assert first.map is not None
        fix = "put it below the heading of the page"
        yield Problem(path, first.map[0] + 1, "holds text above its first heading", fix)


def _unsafe_html(html: str, line: int, path: str) -> Iterator[Problem]:
    for below, what in unsafe_parts(html, written=True):
        yield Problem(path, line + below, unsafe_words(what), WRITE_MARKDOWN)


def _unsafe_text(text: str, line: int, path: str) -> Iterator[Problem]:
    """What Markdown would make of a text as it is written: two parsers do not agree on what is HTML."""
    text = CODE_SPAN.sub(lambda found: "\n" * found[0].count("\n"), text)
    yield from _unsafe_html(_AUTOLINK.sub("", text), line, path)
    for place, one in enumerate(text.split("\n")):
        # Which element a list of attributes belongs to, the text does not tell.
        listed = found[0] if (found := _ATTRIBUTES.search(one)) else ""
        names = (name.lower() for name in _ATTRIBUTE.findall(listed))
        wrong = [f"{name}=" for name in names if unsafe_attribute("", name, written=True)]
        for mark, name in _NAMED.findall(listed):
            if unsafe_class(name, written=True) if mark == "." else unsafe_id(name):
                wrong.append(mark + name)
        wrong += [scheme for address in _ADDRESS.findall(one) if (scheme := unsafe_address(address))]
        for what in wrong:
            yield Problem(path, line + place, unsafe_words(what), WRITE_MARKDOWN)


def _foreign_text(text: str, after: Sequence[Token], line: int, path: str) -> Iterator[Problem]:
    fix = "write it as the other pages do; link a name to its page with `[`name`](address)`"
    found = _FOREIGN.search(text)
    if found:
        yield Problem(path, line, f"`{found[0]}` is syntax of another documentation tool", fix)
    code = after[0].content if after and after[0].type == "code_inline" else None
    closed = len(after) > 1 and after[1].type == "text" and after[1].content.startswith("]")
    if code is not None and text.endswith("[") and closed:
        yield Problem(path, line, f"[`{code}`] links to nothing here", fix)
    elif code is not None and (role := _ROLE.search(text)):
        yield Problem(path, line, f"`{role[0]}` is syntax of another documentation tool", fix)


def added_latin(section: Section, english: str, rules: Rules, path: str) -> Iterator[Problem]:
    """Addresses and Latin words in a row that `english`, what a section was made from, does not hold.

    Readers paste what looks like a command, and few can read what stands around it in a translation.
    """
    for unit in section.units:
        if added := added_words(unit.prose, english, rules.script == "Latn", rules.kept_words):
            offset = unit.prose.find(added)
            line = unit.line_at(offset) if offset >= 0 else unit.line
            yield Problem(
                path, line, f"`{added}` is not in the English section", "translate it, or remove it"
            )


def added_in_front_matter(page: PageSource, english: str, text: str, path: str) -> Iterator[Problem]:
    """Addresses in the title and the synonyms that the English page, `english`, does not hold."""
    for key in ("title", "synonyms"):
        value = page.front_matter.get(key)
        for said in value if isinstance(value, list) else [value]:
            if isinstance(said, str) and (added := added_words(said, english, latin=False, runs=False)):
                what = f"`{key}:` holds `{added}`, which is not on the English page"
                yield Problem(path, line_of_entry(key, text), what, "remove it")


def stray_problems(section: Section, english: str, complete: bool, path: str) -> Iterator[Problem]:
    """What leads elsewhere or is run, in a section that is behind, and was never on the English page.

    Parameters:
        section: The section, which its English one has left behind.
        english: What the English page says and, where git knows it, ever said, with single spaces.
        complete: Whether git knows it.
        path: For messages.
    """
    fix = "follow the English section, or restore what stood here"

    def is_new(text: str) -> bool:
        return " ".join(text.split()) not in english

    for unit in section.units:
        for piece in unit.pieces:
            if piece.kind in ("link", "image"):
                # Without the history, a link may lead where another one of the page does.
                new = is_new(piece.text)
                if not complete:
                    new = bool(unsafe_address(piece.text)) or is_new(urlsplit(piece.text).netloc)
            else:
                new = complete and piece.kind in ("code", "value") and is_new(piece.text)
            if new:
                what = f"`{piece.text}` was never on the English page"
                yield Problem(path, piece.line, what, fix)
    for token in section.tokens:
        if token.type not in ("fence", "code_block"):
            continue
        line = token.map[0] + 1 if token.map else section.line
        ours = fence_name(token) in FENCES
        words = lines_for_readers(token.info, token.content) if ours else frozenset()
        code = [token.info, *(one for at, one in enumerate(token.content.split("\n"), 1) if at not in words)]
        if (complete or not ours) and (new_line := next((one for one in code if is_new(one)), None)):
            yield Problem(path, line, f"`{new_line.strip()}` was never on the English page", fix)


# So many words in a row are not a name: they are a sentence.
_SENTENCE = 4
# Below one share of what is usual on its page, a text has lost something; above the other it says more. Short
# texts vary too much to tell.
_SHORT, _LONG = 0.5, 2
_LONG_ENOUGH = 100
_ENOUGH_TEXTS = 5

Pair = tuple[Section, Section]


def english_problems(section: Section, english: Section, rules: Rules, path: str) -> Iterator[Problem]:
    """Headings and sentences that are still in English."""
    if len(section.units) != len(english.units):
        return
    for unit, other in zip(section.units, english.units, strict=True):
        words, theirs = _words(unit), _words(other)
        left = [word for word in words if word.casefold() not in rules.kept_words]
        english_like = words == theirs or (_is_latin(unit.prose) and rules.script != "Latn")
        if unit.kind == "heading" and left and english_like:
            yield Problem(path, unit.line, f"the heading `{section.title}` is in English", "translate it")
        elif unit.kind != "heading" and len(left) >= _SENTENCE and english_like:
            what = f"“{' '.join(words[:_SENTENCE])} …” is in English"
            yield Problem(path, unit.line, what, "translate it; put a quoted error into a code span")


def odd_lengths(pairs: Sequence[Pair], path: str) -> Iterator[Problem]:
    """Texts much shorter, or longer, beside their English ones than the rest of the page is."""
    texts = [
        (unit, len(unit.prose.strip()) / len(other.prose.strip()))
        for section, english in pairs
        if len(section.units) == len(english.units)
        for unit, other in zip(section.units, english.units, strict=True)
        if len(other.prose.strip()) >= _LONG_ENOUGH
    ]
    if len(texts) < _ENOUGH_TEXTS:
        return
    usual = statistics.median(share for _, share in texts)
    for unit, share in texts:
        if not _SHORT * usual <= share <= _LONG * usual:
            what = (
                f"the text is {share / usual:.0%} as long as the page's others are beside their English ones"
            )
            fix = (
                "translate every sentence of it" if share < usual else "say what the English text says alone"
            )
            yield Problem(path, unit.line, what, fix)


def _words(unit: TextRun) -> list[str]:
    """The words of a text but for numbers and names."""
    return [word for word in words_of(unit.prose) if word[0].isalpha() and not is_proper_name(word)]


def _is_latin(text: str) -> bool:
    """Whether all letters of a text are Latin, and there are any."""
    letters = [letter for letter in text if letter.isalpha()]
    return bool(letters) and all(unicodedata.name(letter, "").startswith("LATIN") for letter in letters)
