"""What is done to a page's HTML after Markdown: isolated Latin, labelled cells, named permalinks."""

from __future__ import annotations

import re
from html import escape
from html.parser import HTMLParser

# Numbers, signs and Latin words, with what may stand between them. Parentheses are left outside: a run that
# held one of a pair would turn it around.
_RUN = re.compile(
    r"(?:(?<!\w)[±−+\-~≈$])?[A-Za-z0-9][A-Za-z0-9 .,:/_+\-−–×·=%^~]*[A-Za-z0-9%×](?:\(\))?"
    r"|(?<!\w)[±−+\-~≈][0-9]"
)
# A plain number or plain words show the same with and without isolation.
_PLAIN = re.compile(r"[0-9.,]+|[A-Za-z ]+")
LONGEST_LABEL = 100
_KEPT = frozenset(
    {"bdi", "code", "data", "kbd", "option", "pre", "samp", "script", "style", "svg", "textarea", "title"}
)
_TITLES = frozenset({"h1", "h2", "h3", "h4", "h5", "h6"})
_PERMALINK = 'title="Permanent link"'
# Three of four elements of a highlighted line.
# Code within a line that is short enough to stay whole, and would break at a hyphen, a slash or a blank.
_WHOLE = re.compile(r'<code( lang="en" dir="ltr")?>(?=[^<]*[-/ ])([^<]{2,24})</code>')
_UNCOLOURED = re.compile(r'<span class="[nopw]">([^<]*)</span>')


def finish(html: str, *, right_to_left: bool, permalink: str) -> str:
    """The HTML of a page's text as the site shows it.

    Parameters:
        html: What Markdown and the fences made.
        right_to_left: Whether the text runs from right to left.
        permalink: What the link beside a heading is called.
    """
    if right_to_left or "<table>" in html:
        rewriter = _Rewriter(right_to_left)
        rewriter.feed(html)
        rewriter.close()
        html = "".join(rewriter.out)
    html = _WHOLE.sub(r'<code\1 class="bb-whole">\2</code>', html)
    return plain_code(html.replace(_PERMALINK, f'aria-label="{escape(permalink)}"'))


def plain_code(html: str) -> str:
    """`html` without the elements that Pygments puts around names and signs, which have no colour."""
    return _UNCOLOURED.sub(r"\1", html)


def isolated_words(text: str, *, right_to_left: bool) -> str:
    """The HTML of a plain text, with its Latin runs isolated where it runs from right to left."""
    if not right_to_left:
        return escape(text)
    parts = []
    end = 0
    for run in _RUN.finditer(text):
        parts += [escape(text[end : run.start()]), _isolated(run)]
        end = run.end()
    return "".join((*parts, escape(text[end:])))


def note_html(text: str, *, right_to_left: bool) -> str:
    """The HTML of a line of a page that stands in a fence: plain text that may hold `code`."""
    parts = text.split("`")
    return "".join(
        f'<code lang="en" dir="ltr">{escape(part)}</code>'
        if place % 2
        else isolated_words(part, right_to_left=right_to_left)
        for place, part in enumerate(parts)
    )


class _Rewriter(HTMLParser):
    """Passes HTML through as it is, but for text and the cells of plain tables."""

    def __init__(self, right_to_left: bool) -> None:
        super().__init__(convert_charrefs=False)
        self.out: list[str] = []
        self._right_to_left = right_to_left
        self._kept = 0
        self._labels: list[str] | None = None
        self._heading = False
        self._titled = False
        self._column = 0
        # Where the head of the table begins in what was written, and whether its cells turned out empty:
        # then it goes, and the first column names the rows.
        self._head = 0
        self._headless = False
        self._wrapped = False
        # Whether the last tag began a block of records, whose table brings its own cards.
        self._ours = False

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        source = self.get_starttag_text() or ""
        if tag in _KEPT:
            self._kept += 1
        if tag in _TITLES:
            self._titled = True
        if tag == "table" and not attrs and not self._ours:
            self._labels = []
            self._headless = False
            source = f'<div class="table-scroll">{source}'
        elif self._labels is not None:
            source = self._cell(tag, source, self._labels)
        self._ours = tag == "div" and (dict(attrs).get("class") or "").startswith("bb-")
        self.out.append(source)

    def _cell(self, tag: str, source: str, labels: list[str]) -> str:
        if tag == "thead":
            self._head = len(self.out)
        elif tag == "tr":
            self._column = 0
        elif tag == "th":
            labels.append("")
            self._heading = True
        elif tag == "td":
            self._column += 1
            if self._headless:
                return f'<th scope="row"{source[3:]}' if self._column == 1 else source
            if self._column <= len(labels):
                # It is written at each row: a long one has no end.
                label = escape(labels[self._column - 1].strip()[:LONGEST_LABEL])
                # On a telephone the label stands beside the words, which must stay together there.
                self._wrapped = self._column > 1
                return f'<td data-label="{label}"{source[3:]}{"<span>" if self._wrapped else ""}'
        return source

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.out.append(self.get_starttag_text() or "")

    def handle_endtag(self, tag: str) -> None:
        if tag in _KEPT:
            self._kept -= 1
        if tag in _TITLES:
            self._titled = False
        if tag == "th":
            self._heading = False
        if tag == "td" and self._headless and self._column == 1:
            tag = "th"
        if tag == "td" and self._wrapped:
            self.out.append("</span>")
            self._wrapped = False
        self.out.append(f"</{tag}>")
        if tag == "thead" and self._labels and not any(label.strip() for label in self._labels):
            del self.out[self._head :]
            self._headless = True
        if tag == "table" and self._labels is not None:
            self._labels = None
            self.out.append("</div>")

    def handle_data(self, data: str) -> None:
        if self._heading and self._labels:
            self._labels[-1] += data
        if self._right_to_left and not self._kept:
            data = _RUN.sub(_isolated_in_title if self._titled else _isolated, data)
        self.out.append(data)

    def handle_entityref(self, name: str) -> None:
        self.out.append(f"&{name};")

    def handle_charref(self, name: str) -> None:
        self.out.append(f"&#{name};")

    def handle_comment(self, data: str) -> None:
        self.out.append(f"<!--{data}-->")

    def handle_decl(self, decl: str) -> None:
        self.out.append(f"<!{decl}>")


def _isolated(match: re.Match[str], tag: str = "bdi") -> str:
    run = match[0]
    return run if _PLAIN.fullmatch(run) else f'<{tag} dir="ltr">{run}</{tag}>'


def _isolated_in_title(match: re.Match[str]) -> str:
    """As elsewhere, but by an element that Pagefind reads as part of the title."""
    return _isolated(match, "span")
