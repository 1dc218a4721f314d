"""What lies in the tree is a plain file of a known kind, and a picture holds nothing but shapes."""

from __future__ import annotations

import os
import re
import subprocess
from collections.abc import Callable
from importlib.resources import files
from pathlib import Path

import pytest

from benchbook.checking.checks import check_project
from benchbook.content.problems import Problem
from benchbook.content.project import Project
from benchbook.content.schemas import FOLDER as SCHEMAS
from benchbook.content.site_files import ASSETS, LOADED, OTHERS_FOLDERS, SITE_FOLDERS, site_file_problems
from benchbook.rendering import downloads, search
from builders import make_project, write

ROOT = Path(__file__).resolve().parents[2]
# The endings of what can load a file.
LOADS = frozenset({".html", ".js", ".py", ".yml"})
SVG = 'xmlns="http://www.w3.org/2000/svg"'
# One of every kind of part that a picture may have.
PICTURE = (
    f'<?xml version="1.0" encoding="UTF-8"?>\n<!-- Drawn by hand. -->\n<svg {SVG} viewBox="0 0 24 24" role="img">\n'
    '  <title>A mark</title>\n  <g transform="translate(1 -2) rotate(45)" fill="rgb(1, 2, 3)" opacity=".5">\n'
    '    <path d="M5 6.5h14M5,12h9" stroke="#fff" stroke-width="2.6" stroke-linecap="round"/>\n'
    '    <rect width="50%" height="24" rx="5"/>\n  </g>\n</svg>\n'
)


@pytest.fixture
def project(tmp_path: Path) -> Project:
    return make_project(tmp_path / "checkout")


def checked(project: Project) -> list[tuple[str, int, str]]:
    found = check_project(Project(project.root)).problems
    assert all(problem.fix for problem in found)
    return [(problem.path, problem.line, problem.what) for problem in found]


@pytest.mark.parametrize(
    ("place", "target"),
    [
        ("docs/en/x.html", "_language.yml"),
        ("docs/en/other.md", "sums.md"),
        ("docs/assets/x.png", "/etc/passwd"),
        ("docs/en/etc", "/etc"),
        ("docs/en/more", "../../snippets/sums"),
        ("docs/en/gone.md", "nowhere.md"),
        ("docs/en/endless.md", "/dev/zero"),
        ("snippets/sums/passwd.py", "/etc/passwd"),
        ("snippets/other", "sums"),
    ],
)
def test_a_link_among_pages_and_scripts_is_named_and_not_followed(
    project: Project, place: str, target: str
) -> None:
    link = project.root / place
    link.parent.mkdir(exist_ok=True)
    link.symlink_to(target)
    assert checked(project) == [(place, 1, "is a link to another place")]
    # The build names it as well, before MkDocs hands it out.
    assert [problem.path for problem in site_file_problems(project)] == [place]


@pytest.mark.parametrize("name", ["docs", "snippets", "mkdocs.yml", "pyproject.toml"])
def test_what_a_checkout_begins_with_is_no_link(project: Project, tmp_path: Path, name: str) -> None:
    (project.root / name).rename(tmp_path / name)
    (project.root / name).symlink_to(tmp_path / name)
    assert checked(project) == [(name, 1, "is a link to another place")]


def a_folder(path: Path) -> None:
    path.mkdir()


@pytest.mark.parametrize(
    ("place", "make", "what"),
    [
        ("docs/en/dir.md", a_folder, "is a folder with the name of a file (.md)"),
        ("docs/ja/_language.yml", a_folder, "is a folder with the name of a file (.yml)"),
        ("snippets/sums/dir.py", a_folder, "is a folder with the name of a file (.py)"),
        ("snippets/records/cpu-test/sums/dir.json", a_folder, "is a folder with the name of a file (.json)"),
        ("docs/en/pipe.md", os.mkfifo, "is neither a file nor a folder"),
        ("snippets/records/cpu-test/sums/pipe.json", os.mkfifo, "is neither a file nor a folder"),
    ],
)
def test_what_only_looks_like_a_file_is_one_problem_and_nothing_waits_for_it(
    project: Project, place: str, make: Callable[[Path], None], what: str
) -> None:
    path = project.root / place
    path.parent.mkdir(exist_ok=True)
    make(path)
    assert checked(project) == [(place, 1, what)]
    assert path not in project.page_paths()


@pytest.mark.parametrize(
    "place", ["docs/en/aux.md", "snippets/models/Com1.json", "snippets/sums/nul.x86.txt"]
)
def test_a_name_that_windows_keeps_for_a_device_is_a_problem(project: Project, place: str) -> None:
    write(project.root / place, "")
    what = "has a name that Windows keeps for a device, so that nobody there can check it out"
    assert checked(project) == [(place, 1, what)]


MARKUP = 'x"><meta http-equiv=refresh content="0;url=x">'


@pytest.mark.parametrize(
    ("name", "what"),
    [
        (f"en/{MARKUP}.md", "has a name that is no address of a page"),
        ("en/Sums.md", "has a name that is no address of a page"),
        ("en/two words.md", "has a name that is no address of a page"),
        ("en/sums\n.md", "has a name that is no address of a page"),
        ("en/zählen.md", "has a name that is no address of a page"),
        ("en/README.md", "has a name that is no address of a page"),
        ("en/sitemap.xml.md", "has a name that is no address of a page"),
        ("en/assets/site.css.md", "is a page in a folder of its own"),
        ("en/ja/index.md", "is a page in a folder of its own"),
        (f"en/{MARKUP}/sums.md", "is a page in a folder of its own"),
        ("en/ja.md", "has the name of a folder that the site has for something else"),
        ("ja/downloads.md", "has the name of a folder that the site has for something else"),
        ("en/pagefind.md", "has the name of a folder that the site has for something else"),
        (f"{MARKUP}/_language.yml", "lies in a folder that no code of a language names"),
        (f"assets/{MARKUP}.png", "has a name, or lies in a folder with one, that is no address of a file"),
        (f"assets/{MARKUP}/a.png", "has a name, or lies in a folder with one, that is no address of a file"),
        ("assets/Images/a.png", "has a name, or lies in a folder with one, that is no address of a file"),
    ],
)
def test_a_name_is_an_address_and_takes_the_place_of_nothing(project: Project, name: str, what: str) -> None:
    write(project.docs / "ja/_language.yml", "strings: {}\nlabels: {}\n")
    assert list(site_file_problems(project)) == []
    write(project.docs / name, "")
    (problem,) = site_file_problems(project)
    assert (problem.path, problem.what.startswith(what)) == (f"docs/{name}", True)
    assert problem in check_project(project).problems


def test_what_the_build_writes_beside_pages_lies_in_folders_that_no_page_is_called_by() -> None:
    assert {ASSETS, SCHEMAS, downloads.FOLDER, search.FOLDER} == SITE_FOLDERS


def problems_of(project: Project, content: bytes) -> list[Problem]:
    path = write(project.docs / "assets/a.svg", "")
    path.write_bytes(content)
    return list(site_file_problems(project))


def test_a_picture_of_shapes_is_in_order(project: Project) -> None:
    assert problems_of(project, PICTURE.encode()) == []


@pytest.mark.parametrize(
    ("name", "what"),
    [
        ("stylesheets/main.57a0d79d.min.css", "lies where the theme or the build puts files of its own"),
        ("images/favicon.png", "lies where the theme or the build puts files of its own"),
        ("data/memory/en/cpu-test.png", "lies where the theme or the build puts files of its own"),
        ("more/site.css", "is a style or a script that no page loads"),
        ("evil.js", "is a style or a script that no page loads"),
    ],
)
def test_no_file_takes_the_place_of_another_and_none_is_loaded_by_nobody(
    project: Project, name: str, what: str
) -> None:
    write(project.docs / "assets" / name, "")
    write(project.docs / "assets/site.css", "")
    write(project.docs / "assets/pictures/a.png", "")
    (problem,) = site_file_problems(project)
    assert (problem.path, problem.what.startswith(what)) == (f"docs/assets/{name}", True)


@pytest.mark.parametrize(
    ("style", "line", "what"),
    [
        ('a {}\na::before { content: "wrong"; }', 2, "says wrong"),
        ("a::before { content: '\\00a0\\34 2'", 1, "says \u00a042"),
        ('a { CONTENT: /* "\n" */ "wrong" }', 2, "says wrong"),
        ('a { list-style: "wrong" }', 1, "says wrong"),
        ("a { --own: 'wrong' }", 1, "says wrong"),
        ("a { b { font: c; --own: 'wrong' } }", 1, "says wrong"),
        ("a {\n}}", 2, "is no style that parsers agree on"),
        ("a::before { content: var(--own) }", 1, "`content: var(--own)` writes more than signs"),
        ("a::before { content: counter(own)", 1, "`content: counter(own)` writes more than signs"),
        ("a::before { c\\6fntent: 'wrong' }", 1, "says wrong"),
        ("a { background: url(data:image/svg+xml,wrong) }", 1, "loads a picture"),
        ('@import "own.css";', 1, "`@import` has no place in a style here"),
        ("@counter-style own { symbols: wrong }", 1, "`@counter-style` has no place"),
        ("a { width: " + "9" * 5000, 1, "holds a number that is beyond all others"),
        ("a { width: " + "(" * 100_000, 1, "nests deeper than parsers follow"),
        ("a{" * 50_000, 1, "nests deeper than parsers follow"),
        ("a " * 100_001, 1, "has 200002 characters, and 200000 are the most"),
    ],
)
def test_a_style_of_the_site_writes_no_words(project: Project, style: str, line: int, what: str) -> None:
    write(project.docs / "assets/site.css", style)
    (problem,) = site_file_problems(project)
    assert (problem.path, problem.line, problem.what[: len(what)]) == ("docs/assets/site.css", line, what)


def test_a_style_of_the_site_names_fonts_and_attributes_and_writes_signs(project: Project) -> None:
    write(
        project.docs / "assets/site.css",
        '/* "x" */ a[b="c"]::after { font: 1em "SF"; content: "\\00a0✓" / ""; }',
    )
    assert list(site_file_problems(project)) == []


def test_what_the_theme_ships_lies_in_folders_of_its_own() -> None:
    pytest.importorskip("material")
    assert {path.name for path in files("material").joinpath("templates/assets").iterdir()} <= OTHERS_FOLDERS


def test_every_style_and_script_of_the_site_is_loaded() -> None:
    assets = ROOT / "docs/assets"
    assert {path.name for path in assets.iterdir() if path.suffix in (".css", ".js")} == LOADED
    sources = [
        ROOT / "mkdocs.yml",
        *assets.glob("*.js"),
        *(ROOT / "scripts/benchbook/rendering").rglob("*.*"),
    ]
    text = "\n".join(path.read_text("utf-8") for path in sources if path.suffix in LOADS)
    assert [name for name in sorted(LOADED) if not re.search(rf"[\"'/]{re.escape(name)}[\"']?", text)] == []


REFUSED = {
    "a script": (f"<svg {SVG}>\n<script>1</script></svg>", 2, "holds `<script`"),
    "a script behind a prefix with a hyphen": (
        '<s-v:svg xmlns:s-v="http://www.w3.org/2000/svg">\n<s-v:script>1</s-v:script></s-v:svg>',
        2,
        "holds `<script`",
    ),
    "an element of another language": (
        f'<svg {SVG}><h:iframe xmlns:h="http://www.w3.org/1999/xhtml"/></svg>',
        1,
        "holds `<iframe`",
    ),
    "an element in other letters": (f"<svg {SVG}><SCRIPT/></svg>", 1, "holds `<SCRIPT`"),
    "an element of another language with a name of ours": (
        '<g xmlns="http://www.w3.org/1999/xhtml">Sign in again.</g>',
        1,
        "holds `<g`",
    ),
    "no namespace": ("<svg><g/></svg>", 1, "holds `<svg`"),
    "another root": (f"<g {SVG}/>", 1, "holds `<g`"),
    "bare words": (f"<svg {SVG}>\n<g>Sign in again.</g></svg>", 2, "holds `Sign in again.`"),
    "quoted words": (f"<svg {SVG}><![CDATA[Sign in again.]]></svg>", 1, "holds `Sign in again.`"),
    "words behind a name": (f"<svg {SVG}><title>A mark</title>Sign in</svg>", 1, "holds `Sign in`"),
    "words": (f"<svg {SVG}><text>42 ms</text></svg>", 1, "holds `<text`"),
    "what listens": (f'<svg {SVG}>\n<g\n onload="1"/></svg>', 2, "holds `onload=`"),
    "what leads away": (
        f'<svg {SVG} xmlns:l-k="http://www.w3.org/1999/xlink"><g l-k:href="https://evil.example"/></svg>',
        1,
        "holds `href=`",
    ),
    "a style": (f'<svg {SVG}><g style="fill: red"/></svg>', 1, "holds `style=`"),
    "what is loaded": (f'<svg {SVG}><g fill="url(https://evil.example)"/></svg>', 1, 'holds `fill="url('),
    "what is loaded, spelled otherwise": (
        f'<svg {SVG}><g fill="u&#x72;l(//evil.example)"/></svg>',
        1,
        'holds `fill="url(',
    ),
    "entities": (f'<!DOCTYPE svg [<!ENTITY a "b">]>\n<svg {SVG}/>', 1, "holds `<!DOCTYPE`"),
    "an instruction": (f'<?xml-stylesheet href="x.css"?><svg {SVG}/>', 1, "holds `<?xml-stylesheet`"),
    "another encoding": (
        f'<?xml version="1.0" encoding="utf-7"?><svg {SVG}/>',
        1,
        'holds `encoding="utf-7"`',
    ),
    "no XML": (f"<svg {SVG}>\n<g>\n</svg>", 3, "is not XML"),
}


@pytest.mark.parametrize(("text", "line", "what"), REFUSED.values(), ids=REFUSED)
def test_what_is_no_plain_shape_is_named_with_its_line(
    project: Project, text: str, line: int, what: str
) -> None:
    (problem,) = problems_of(project, text.encode())
    assert (problem.path, problem.line, problem.what.startswith(what)) == ("docs/assets/a.svg", line, True)
    assert problem.fix


@pytest.mark.parametrize(
    ("encoding", "what"),
    [
        ("utf-16", "is not UTF-8"),
        ("utf-16-le", "is not UTF-8"),
        ("utf-32", "is not UTF-8"),
        ("utf-8-sig", "begins with a byte order mark"),
    ],
)
def test_a_picture_is_read_as_browsers_read_it_or_refused(project: Project, encoding: str, what: str) -> None:
    (problem,) = problems_of(project, f"<svg {SVG}><script>1</script></svg>".encode(encoding))
    assert problem.what.startswith(what)


@pytest.mark.parametrize(
    ("place", "content", "what"),
    [
        ("constraints.txt", b"torch==2\xff", "is not UTF-8"),
        ("docs/en/_language.yml", b"strings: {a: \xff}", "is not UTF-8"),
        ("snippets/sums/claims.toml", b"\xff", "is not UTF-8"),
        (f"snippets/sums/{'a' * 118}.py", b"", "has a name of 121 characters, and 120 are the most"),
        (f"snippets/models/{'d/' * 8}a.json", b"{}", "is a folder in 8 others, and nothing lies as deep"),
    ],
)
def test_a_tree_that_cannot_be_looked_through_is_told_before_anything_is_read(
    tmp_path: Path, place: str, content: bytes, what: str
) -> None:
    project = make_project(tmp_path)
    path = project.root / place
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content)
    (problem,) = check_project(project).problems
    assert place.startswith(problem.path)
    assert problem.what.startswith(what)


def test_folders_of_a_thousand_levels_are_one_problem(tmp_path: Path) -> None:
    project = make_project(tmp_path)
    here = os.open(project.snippets, os.O_RDONLY)
    for _ in range(1100):
        os.mkdir("d", dir_fd=here)
        inner = os.open("d", os.O_RDONLY, dir_fd=here)
        os.close(here)
        here = inner
    os.close(here)
    assert len(check_project(project).problems) == 1
    # Neither pytest's own clearing up follows so many.
    subprocess.run(["rm", "-rf", str(project.snippets / "d")], check=True)
