"""A page runs nothing that its text says: what would run is named where it is written, and taken out."""

from __future__ import annotations

import base64
import hashlib
import re
from html.parser import HTMLParser
from pathlib import Path

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from markdown import Markdown

from benchbook.content.cleaning import clean
from benchbook.content.page_source import parse_page
from benchbook.content.problems import BenchbookError, Problem
from benchbook.content.safe_html import ATTRIBUTES, MADE, WRITTEN, unsafe_address, unsafe_parts
from benchbook.content.site_files import site_file_problems
from benchbook.content.yaml_text import InvalidYamlError, parse_yaml
from benchbook.languages.language import load_language
from benchbook.languages.prose import prose_problems
from benchbook.languages.style import style_problems
from benchbook.rendering.security import content_security_policy, inline_script
from benchbook.translations.leftovers import foreign_problems, front_matter_problems, preamble_problems
from benchbook.translations.sections import sections_of
from builders import make_project, write
from handbooks import edit

DOCS = Path(__file__).parents[2] / "docs"
EXTENSIONS = ["attr_list", "md_in_html", "tables", "pymdownx.superfences"]
HOSTILE = {
    "<script>poisoned=1</script>": "`<script>`",
    "An <img src=x onerror=poisoned=1> here.": "`onerror=`",
    "Some *words*{ onmouseover=poisoned=1 } here.": "`onmouseover=`",
    "A paragraph.\n{: style=position:fixed }": "`style=`",
    "[A link](javascript:poisoned=1)": "`javascript:`",
    "[A link](JaVaScript:poisoned=1)": "`javascript:`",
    "[A link](java&#115;cript:poisoned=1)": "`javascript:`",
    "[A link](java&Tab;script:poisoned=1)": "`javascript:`",
    "[A link][one]\n\n[one]: javascript:poisoned=1": "`javascript:`",
    "[A link](data:text/html,<script>poisoned=1</script>)": "`data:`",
    "[A link](vbscript:poisoned)": "`vbscript:`",
    "[A link](http://example.org)": "`http:`",
    "[A link](//example.org/x)": "`//`",
    "![A picture](https:&#x2f;/example.org/x.png){ onload=poisoned=1 }": "`onload=`",
    '<a href="javascript:poisoned=1">A link</a>': "`javascript:`",
    '<iframe src="https://example.org"></iframe>': "`<iframe>`",
    "<svg onload=poisoned=1></svg>": "`<svg>`",
    "<math><mtext></mtext></math>": "`<math>`",
    '<form action="https://example.org"><input name=a></form>': "`<form>`",
    "<input type=text name=password>": "`<input>`",
    '<meta http-equiv="refresh" content="0;url=https://example.org">': "`<meta>`",
    '<base href="https://example.org/">': "`<base>`",
    "<object data=x></object>": "`<object>`",
    "<style>body{display:none}</style>": "`<style>`",
    "<p style='position:fixed'>x</p>": "`style=`",
    '<div data-bb-slot="0"></div>': "`data-bb-slot=`",
    '<img src="https://example.org/a.png">': "`https:`",
    "<div>\n<!-- never closed\n</div>": "`<`",
    "Words <!-- and a remark --> here.": "`<!--`",
    '<p>A</p><p title="never closed>': "`<`",
    "Some *words*{ .bb-value } here.": "`.bb-value`",
    '<span class="bb-value">12</span> words': "`.bb-value`",
    'A paragraph.\n{: .bb-value title="{" }': "`.bb-value`",
    'A paragraph.\n{: title="12 words" }': "`title=`",
    '<span title="12 words">words</span>': "`title=`",
    "A paragraph.\n{: .md-toggle }": "`.md-toggle`",
    "A paragraph.\n{:.measured.md-option}": "`.measured.md-option`",
    '<details class="md-option"></details>': "`.md-option`",
    "A paragraph.\n{: #site-text }": "`#site-text`",
    "## Part { #calc-settings }": "`#calc-settings`",
    "A paragraph.\n{: #__search }": "`#__search`",
    '<div id="BB-page"></div>': "`#BB-page`",
    '<div id="claim-one"></div>': "`#claim-one`",
    '<h2 id=\'x"><b>\' markdown="1">Part</h2>': '`#x"><b>`',
    'A paragraph.\n{: #x"><plaintext> }': '`#x"><plaintext>`',
    '<div id=""></div>': "`#` is not an id",
    '<div id="größe"></div>': "`#größe`",
    "See [it](https://[).": "`https://[`",
    "![it](//[x)": "`//[x`",
    "See [it](https://a\u2100b/).": "`https://a\u2100b/`",
    "See [it](https://a:99999/).": "`https://a:99999/`",
    "See <https://256.1.1.1/>.": "`https://256.1.1.1/`",
    "See [it](https:///).": "`https:///`",
    "<details ontoggle=poisoned=1 open>x</details>": "`ontoggle=`",
}


def found(text: str) -> list[Problem]:
    page = parse_page(text)
    of_sections = [one for section in sections_of(page, text) for one in foreign_problems(section, "a.md")]
    return [*front_matter_problems(page, text, "a.md"), *of_sections]


class Held(HTMLParser):
    """The elements of a piece of HTML with the names of their attributes, and its text."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.elements: list[tuple[str, list[str]]] = []
        self.text = ""
        self.feed(html)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, sorted(name for name, _ in attrs)))

    def handle_data(self, data: str) -> None:
        self.text += data


@pytest.mark.parametrize("text", HOSTILE)
def test_what_would_run_is_named_with_its_line(text: str) -> None:
    problems = found(f"# Title {{ #title }}\n\nWords.\n\n{text}\n")
    assert any(HOSTILE[text] in problem.what for problem in problems), problems
    assert all(problem.line >= 5 for problem in problems)


@pytest.mark.parametrize("text", HOSTILE)
def test_what_would_run_is_taken_out_of_what_markdown_makes(text: str) -> None:
    html = Markdown(extensions=EXTENSIONS).convert(text)
    cleaned = clean(html)
    left = [what for _, what in unsafe_parts(cleaned)]
    # An address that only leads elsewhere runs nothing: it is told, and the build refuses it.
    assert set(left) <= {"//"}
    assert "poisoned" not in re.sub(r">[^<]*<", "><", cleaned)


@pytest.mark.parametrize(
    "entry",
    [
        'title: "&lt;/title&gt;&lt;script&gt;poisoned=1&lt;/script&gt;"',
        "title: </title><script>poisoned=1</script>",
        'description: "\\" onload=poisoned=1 <b>"',
        "synonyms: [words, javascript:poisoned=1]",
    ],
)
def test_markup_in_the_head_of_a_page_is_named_with_its_line(entry: str) -> None:
    (problem,) = found(f"---\nreviewed: false\n{entry}\n---\n\n# Title {{ #title }}\n")
    assert (problem.line, "holds markup or an address" in problem.what) == (3, True)


def test_what_pages_are_written_in_is_in_order() -> None:
    text = """# Title { #title }

A [page](other.md#part), a [section](#title), <https://example.org/a?b=c> and ![a picture](assets/a.svg){ width=40 }.
It is <kbd>Ctrl</kbd> + <br> 3 < 4 & 5 > 2, `javascript:` in code, a ratio of 3:4 and {braces}.

<div class="remedies" markdown="1">

| a | b |
|---|--:|
| 1 | 2 |
{ .measured }

</div>

```text
<script>poisoned=1</script> [x](javascript:y)
```
"""
    assert found(text) == []


# Whatever stands in a page, cleaning takes away nothing that was not named.
NAMES = st.sampled_from([*sorted(WRITTEN | MADE), "script", "svg", "iframe", "x-y", "Form"])
KEYS = st.sampled_from(
    [*sorted(set().union(*ATTRIBUTES.values())), "onclick", "style", "OnLoad", "srcset", "ping"]
)
TEXTS = st.text(st.characters(codec="ascii", exclude_characters='<>"&\\\0\r'), max_size=12)
ADDRESSES = st.sampled_from(
    ["#a", "a.md", "https://a.org/b", "javascript:a", " jAvascript:a", "//a.org", "data:,a"]
)
PIECES = st.builds(
    lambda tag, keys, inside: (
        f"<{tag}" + "".join(f' {key}="{value}"' for key, value in keys.items()) + f">{inside}"
    ),
    NAMES,
    st.dictionaries(KEYS, TEXTS | ADDRESSES, max_size=3),
    TEXTS,
)


@given(st.lists(PIECES | TEXTS, max_size=5).map("".join))
@example('<a class="">')
def test_cleaning_takes_away_only_what_is_named(html: str) -> None:
    named = [what for _, what in unsafe_parts(html)]
    before, after = Held(html), Held(clean(html))
    kept = {name for _, names in after.elements for name in names}
    assert {tag for tag, _ in after.elements} <= WRITTEN | MADE | {"tbody", "colgroup", "tr"}
    assert not any(name.startswith("on") or name in {"style", "srcset", "ping"} for name in kept)
    if not named:
        gone = {name for _, names in before.elements for name in names} - kept
        # An element where none may stand goes with its attributes: a cell without a table.
        assert gone == set() or len(after.elements) < len(before.elements)


@pytest.mark.parametrize(
    ("html", "named"),
    [
        ('<ol start="16"><li>GB are saved.</li></ol>', "start="),
        ('<ol><li value="17">GB are saved.</li></ol>', "value="),
        ("<ol reversed><li>GB are saved.</li></ol>", "reversed="),
    ],
)
def test_no_list_counts_otherwise_than_from_one(html: str, named: str) -> None:
    assert [what for _, what in unsafe_parts(html, written=True)] == [named]
    assert named not in clean(html)
    assert "reversed" not in clean(html)


@given(st.text(max_size=30))
def test_no_address_with_another_scheme_is_in_order(text: str) -> None:
    for scheme in ("javascript:", "\x01java\nscript:", "data:", "http:", "&#106;avascript:"):
        assert unsafe_address(scheme + text) is not None
    assert unsafe_address(f"#{text}") is None


@pytest.mark.parametrize(
    "address", ["https:example.org", "https:/example.org", "https:", "https://", "mailto:"]
)
def test_a_full_address_names_whom_it_leads_to(address: str) -> None:
    assert unsafe_address(address) == address


def test_a_text_of_the_interface_holds_no_markup(tmp_path: Path) -> None:
    project = make_project(tmp_path)
    file = project.docs / "en/_language.yml"
    for text in ("'<b>x</b>'", "'\" onclick=x '", "'&lt;script&gt;'", "{other: '<img>'}"):
        file.write_text(f"strings:\n  menu: {text}\n", "utf-8")
        with pytest.raises(Exception, match=r"_language\.yml:2: `menu` holds markup or a straight"):
            load_language(project.docs, "en")
    edit(file, "{other: '<img>'}", "'<{ratio}×'")
    assert load_language(project.docs, "en").strings["menu"] == "<{ratio}×"


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("labels: {step_time: %s}" % ("a" * 151), "`step_time` has 151 characters, and 150 are the most"),
        ("strings: {menu: {other: %s}}" % ("a" * 401), "`menu` has 401 characters, and 400 are the most"),
        ("units: {samples/s: %s}" % ("a" * 151), "`samples/s` has 151 characters, and 150 are the most"),
    ],
)
def test_what_pages_repeat_in_each_row_is_short(tmp_path: Path, text: str, said: str) -> None:
    """In English too, to which the other languages are held."""
    project = make_project(tmp_path)
    file = project.docs / "en/_language.yml"
    file.write_text(text, "utf-8")
    with pytest.raises(BenchbookError, match=said):
        load_language(project.docs, "en")
    file.write_text(f"labels: {{nvidia-h100-80gb--published: {'a' * 400}}}", "utf-8")
    assert load_language(project.docs, "en").labels


def test_the_policy_lets_our_own_scripts_run_and_nothing_else() -> None:
    policy = content_security_policy()
    for name in ("choice", "not_found", "scheme"):
        digest = hashlib.sha256(inline_script(name).encode()).digest()
        assert f"'sha256-{base64.b64encode(digest).decode()}'" in policy
    assert policy.startswith("default-src 'none'; script-src 'self' ")
    assert "'unsafe-inline'" not in policy.split("style-src")[0]
    assert "'unsafe-eval'" not in policy


@pytest.mark.parametrize(
    ("entry", "what"),
    [
        ("template: base.html", "unknown key `template`"),
        ("author: {a: '\"><script>poisoned=1</script>'}", "unknown key `author`"),
        ("title: {a: b}", "`title:` is not text"),
        ("synonyms: [[x, x]]", "`synonyms:` is no list of words"),
        ("synonyms: words", "`synonyms:` is no list of words"),
        (f"synonyms: [{'x' * 101}]", "`synonyms:` has an entry of 101 characters"),
        (f"synonyms: [{'x, ' * 101}]", "`synonyms:` has 101 entries"),
        ("draft: [x]", "`draft:` is no yes or no"),
    ],
)
def test_the_head_of_a_page_says_what_pages_say_and_nothing_else(entry: str, what: str) -> None:
    problems = found(f"---\n{entry}\n---\n\n# Title {{ #title }}\n")
    assert [(problem.line, what in problem.what) for problem in problems] == [(2, True)]


def test_text_above_the_first_heading_is_named() -> None:
    page = parse_page("---\ndescription: x\n---\nA line that no section holds.\n\n# Title { #title }\n")
    (problem,) = preamble_problems(page, "a.md")
    assert (problem.line, problem.what) == (4, "holds text above its first heading")


def test_a_number_is_one_however_it_is_set() -> None:
    for text in ("It takes **12** GB.", "It takes *1*2 GB.", "It takes ⑫ GB.", "It takes `x` 12 GB."):
        page = parse_page(f"---\ndescription: x\n---\n# Title {{ #title }}\n\n{text}\n")
        assert [problem.line for problem in prose_problems(page, "a.md", {"GB"})] == [6], text


@pytest.mark.parametrize(
    ("name", "text", "what"),
    [
        ("assets/evil.html", "<script>1</script>", "is of a kind that the site has none of (.html)"),
        (
            "assets/evil.svg",
            "<svg xmlns='http://www.w3.org/2000/svg' onload='poisoned=1'/>",
            "holds `onload=`",
        ),
        (
            "assets/evil.svg",
            "<svg xmlns='http://www.w3.org/2000/svg'><script>1</script></svg>",
            "holds `<script`",
        ),
        (
            "assets/evil.svg",
            "<svg xmlns='http://www.w3.org/2000/svg'><style>@import url(x)</style></svg>",
            "holds `<style`",
        ),
        ("en/evil.html", "<p>x</p>", "is neither a page of a language nor a file of the site"),
        ("en/evil.markdown", "12 GB", "is neither a page of a language nor a file of the site"),
        ("evil.md", "# x", "is neither a page of a language nor a file of the site"),
    ],
)
def test_a_file_that_would_run_or_that_nobody_checks_is_named(
    tmp_path: Path, name: str, text: str, what: str
) -> None:
    project = make_project(tmp_path)
    assert list(site_file_problems(project)) == []
    write(project.docs / name, text)
    (problem,) = site_file_problems(project)
    assert (problem.path, what in problem.what) == (f"docs/{name}", True)


@pytest.mark.parametrize(
    "style",
    [
        ".bb-value { font-size: 0 }",
        ".bb-value::after { content: '3 MB' }",
        ":lang(xx) .bb-value::after { content: '3 MB' }",
        ":lang(xx) .bb-value { font-size: 0 }",
        ":lang(xx) .bb-value { display: none }",
        ".bb-value:not(:lang(xx)) { line-height: 2 }",
        ":is(:lang(xx), body) { line-height: 2 }",
        ":lang(xx), body { line-height: 2 }",
        "@import 'https://example.org/a.css';",
        ":lang(xx) { --site-sans: url(https://example.org/a) }",
        ":lang(xx) { line-height: 2 } }",
        ":lang(xx) { line-h\\65ight: 2 }",
        ":lang(xx) p { letter-spacing: -2em }",
        ":lang(xx) p { letter-spacing: -0.11em }",
        ":lang(xx) p { word-spacing: -1em }",
        ":lang(xx) .bb-value { letter-spacing: -0.1em }",
        ":lang(xx) .calc-total { line-height: 1 }",
        ":lang(xx) data { line-height: 1 }",
        ":lang(xx) [data-ref] { line-height: 1 }",
        ":lang(xx) * { line-height: 1 }",
        ":lang(xx) p::first-letter { line-height: 1 }",
        ":lang(xx) li { font-size: 0.8em }",
        ":lang(xx) { font-family: Wingdings }",
        # Told at once: a class is read in one way only.
        ":lang(xx) " + ".a-p" * 200 + "! { line-height: 2 }",
        # What is not read at all: no language here has a twentieth of it.
        ":lang(xx) { line-height: 2 }" + " " * 60_000,
        ":lang(xx) { line-height: 2 } /*",
        # A comment mark in a string begins no comment, nor does one in a comment end a string.
        ':lang(xx) { font-family: "/*" } body { display: none } :lang(xx) { font-family: "*/" }',
        ":lang(xx) { font-family: '/*' } body { display: none } :lang(xx) { font-family: '*/' }",
        ':lang(xx) { font-family: "a } body { display: none }',
        ':lang(xx) { font-family: "a;b" }',
        ':lang(xx) { font-family: "a\nb" }',
        ":not/**/(:lang(xx)) { line-height: 2 }",
        ":lang(xx) { disp/**/lay: none }",
    ],
)
def test_the_style_of_a_language_is_of_its_letters_alone(style: str) -> None:
    assert list(style_problems(style, "xx"))
    for fine in (
        ":lang(xx) > body :is(h1, h2) { line-height: 1.8; letter-spacing: 0 }",
        ":lang(xx) p { letter-spacing: -0.1em; word-spacing: .05em }",
        ".bb-table td:lang(xx) { overflow-wrap: anywhere; padding-inline: 0.5em }",
        '/* "It\'s */ :lang(xx) { font-family: "Noto Sans", sans-serif /* "*/ }',
        "/* a */ @media (min-width: 4em) { :lang(xx) p { line-height: 2 } /**/ }" + " " * 19_000,
    ):
        assert list(style_problems(fine, "xx")) == []
    for code in ("ar", "ja", "zh"):
        assert list(style_problems(load_language(DOCS, code).style, code)) == []


@pytest.mark.parametrize("text", ["{nope}×", "{ratio:>9999999999}", "{ratio.__class__} {percent}", "{0}"])
def test_a_placeholder_is_a_name_that_english_has(tmp_path: Path, text: str) -> None:
    project = make_project(tmp_path)
    write(project.docs / "en/_language.yml", "strings:\n  times: '{ratio}×'\n")
    write(project.docs / "ja/_language.yml", f"strings:\n  times: '{text}'\n")
    with pytest.raises(Exception, match=r"docs/ja/_language\.yml:2: `times` h(as|olds)"):
        load_language(project.docs, "ja")


def test_a_key_that_yaml_has_twice_is_refused() -> None:
    with pytest.raises(InvalidYamlError, match="the key `style` is there twice"):
        parse_yaml("style: a\nstrings: {}\nstyle: b\n")
    assert parse_yaml("a: {b: 1}\nc: {<<: {b: 1}, b: 2}\n") == {"a": {"b": 1}, "c": {"b": 2}}


@pytest.mark.parametrize(
    ("text", "line", "what"),
    [
        ("a: 1\nb: &x [1]\n", 2, "holds `&x`, which repeats a value under a name"),
        ("a:\n  - *x\n", 2, "holds `*x`, which repeats a value under a name"),
        ("a: !!bool maybe", 1, "holds the tag `tag:yaml.org,2002:bool`"),
        ("a: " + "[" * 100_000, 1, "nests deeper than 30 levels"),
        ("- " * 100_000, 1, "nests deeper than 30 levels"),
        ("made: 2026-02-31", 1, "is not valid YAML"),
        ("made: " + "9" * 5000, 1, "is not valid YAML"),
        ("made: 1" + ":00" * 300 + ".5", 1, "is not valid YAML"),
    ],
    ids=lambda value: str(value)[:20],
)
def test_yaml_is_data_that_is_as_large_as_it_looks(text: str, line: int, what: str) -> None:
    with pytest.raises(InvalidYamlError) as caught:
        parse_yaml(text)
    assert (caught.value.line, caught.value.what) == (line, what)
