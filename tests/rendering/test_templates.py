"""The theme's templates."""

import re
from pathlib import Path

import material
import pytest
from jinja2 import Environment
from mkdocs.theme import Theme

from benchbook.rendering.templates import TemplateCache, Templates, quicken
from browser.building import ROOT


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / ".icons").mkdir()
    (tmp_path / ".icons" / "a.svg").write_text("<svg/>", "utf-8")
    (tmp_path / "assets").mkdir()
    (tmp_path / "assets" / "a.css").write_text("a {}", "utf-8")
    (tmp_path / "main.html").write_text("one", "utf-8")
    return tmp_path


def test_hidden_folders_are_not_listed_but_can_be_used(folder: Path) -> None:
    templates = Templates([str(folder)], TemplateCache())
    assert templates.list_templates() == ["assets/a.css", "main.html"]
    assert Environment(loader=templates).get_template(".icons/a.svg").render() == "<svg/>"


def test_a_template_that_changed_is_compiled_anew(folder: Path) -> None:
    theme = Theme(name=None, custom_dir=str(folder))
    quicken(theme, TemplateCache())
    assert theme.get_env().get_template("main.html").render() == "one"
    (folder / "main.html").write_text("two", "utf-8")
    assert theme.get_env().get_template("main.html").render() == "two"


def test_a_template_that_did_not_change_is_compiled_once(folder: Path) -> None:
    cache = TemplateCache()
    theme = Theme(name=None, custom_dir=str(folder))
    quicken(theme, cache)
    theme.get_env().get_template("main.html")
    compiled = dict(cache._codes)
    theme.get_env().get_template("main.html")
    assert cache._codes == compiled
    assert len(compiled) == 1


def test_what_a_template_puts_out_is_text_unless_it_says_that_it_is_html(folder: Path) -> None:
    (folder / "main.html").write_text('<a href="{{ name }}">{{ content | safe }}</a>', "utf-8")
    theme = Theme(name=None, custom_dir=str(folder))
    quicken(theme, TemplateCache())
    made = theme.get_env().get_template("main.html").render(name='x"><meta>', content="<b>x</b>")
    assert made == '<a href="x&#34;&gt;&lt;meta&gt;"><b>x</b></a>'


def test_each_kind_of_code_has_a_colour_of_ours_light_and_dark() -> None:
    sheets = Path(material.__file__).parent / "templates/assets/stylesheets"
    theirs = "".join(path.read_text("utf-8") for path in sheets.glob("main.*.css"))
    ours = (ROOT / "docs/assets/site.css").read_text("utf-8")
    kinds = set(re.findall(r"--md-code-hl-[a-z]+-color", theirs))
    assert kinds
    assert {kind for kind in kinds if f"{kind}:" not in ours} == set()
