"""What a piece of Python says, whatever way it is laid out."""

import ast
from pathlib import Path

import pytest

from benchbook.content.code_lines import code_lines

ROOT = Path(__file__).parents[2]


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("f(a, b)", "f(\n    a,\n    b,\n)"),
        ("f(a)", "f(\n    a,  # the first\n)"),
        ("x = [a, b]", "x = [\n    a,\n\n    b,\n]"),
        ("x = {'a': 1}", "x = {\n    'a': 1,\n}"),
        ("x = (a, b)", "x = (\n    a,\n    b,\n)"),
        ("def f(a): return a", "def f(\n    a,\n): return a"),
        ("x = a[0](b)", "x = a[0](\n    b,\n)"),
        ("x = a + b", "x = a \\\n    + b"),
        ("if a:\n    b = 1", "if a:\n\n  # why\n  b=1  # so"),
        ("for x in a:\n    if x:\n        b = f'{x}'\nc = 1", "for x in a:\n  if x:\n    b = f'{x}'\nc = 1"),
    ],
)
def test_layout_comments_and_commas_that_say_nothing_are_not_what_code_says(one: str, other: str) -> None:
    assert code_lines(other) == code_lines(one)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("x = (a)", "x = (a,)"),
        ("x = a[b]", "x = a[b,]"),
        ("return_(a)", "return (a)"),
        ("for x in (a,): pass", "for x in (a): pass"),
        ("x = 'a  b'", "x = 'a b'"),
        ("x = f'{a}  b'", "x = f'{a} b'"),
        ("x = f'{a:>{b}}'", "x = f'{a:>{c}}'"),
        ("if a:\n    b = 1\nc = 1", "if a:\n    b = 1\n    c = 1"),
        ("x = not a", "x = nota"),
        ("x = a, b", "x = a"),
        ("x = a,", "x = a"),
        ("x = ''", "x = ' '"),
    ],
)
def test_what_another_value_comes_of_is_told_apart(one: str, other: str) -> None:
    assert code_lines(other) != code_lines(one)


def test_text_inside_strings_is_code_even_where_it_looks_like_a_comment() -> None:
    source = 'a = """x\n\n# y\n"""  # z\n\n# gone\nb = 1'
    assert code_lines(source) == ['a = """x\n\n# y\n"""', "b = 1"]


def test_an_f_string_is_one_piece_with_all_that_stands_in_it() -> None:
    source = 'a = f"""x {f(b,  c,)}\n\n {d!r:>{f}} # y\n"""  # z\nb = 1'
    assert code_lines(source) == ['a = f"""x {f(b,  c,)}\n\n {d!r:>{f}} # y\n"""', "b = 1"]


@pytest.mark.parametrize("path", sorted(ROOT.glob("snippets/*/*.py")), ids=lambda path: path.stem)
def test_what_a_script_says_is_the_same_program(path: Path) -> None:
    source = path.read_text("utf-8")
    assert ast.dump(ast.parse("\n".join(code_lines(source)))) == ast.dump(ast.parse(source))
