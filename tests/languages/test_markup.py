"""The HTML of a page after Markdown."""

import pytest

from benchbook.languages.markup import finish


def rtl(html: str) -> str:
    return finish(html, right_to_left=True, permalink="رابط")


def ltr(html: str) -> str:
    return finish(html, right_to_left=False, permalink="Link")


def test_a_number_with_its_unit_is_isolated_in_right_to_left_text() -> None:
    assert rtl("<p>حتى 24 GB.</p>") == '<p>حتى <bdi dir="ltr">24 GB</bdi>.</p>'


def test_a_signed_number_keeps_its_sign_on_the_left() -> None:
    assert rtl("<p>بفارق -3.5 %</p>") == '<p>بفارق <bdi dir="ltr">-3.5 %</bdi></p>'


def test_a_single_digit_keeps_its_sign_on_the_left() -> None:
    assert rtl("<p>القيمة -9.</p>") == '<p>القيمة <bdi dir="ltr">-9</bdi>.</p>'


def test_the_parentheses_of_a_call_stay_behind_its_name() -> None:
    assert rtl("<p>أين تضع zero_grad()</p>") == '<p>أين تضع <bdi dir="ltr">zero_grad()</bdi></p>'


def test_a_plain_word_or_number_needs_no_isolation() -> None:
    assert rtl("<p>مع PyTorch على 8 وحدات</p>") == "<p>مع PyTorch على 8 وحدات</p>"


def test_numbers_in_code_and_bound_values_are_not_isolated() -> None:
    html = '<p><code class="bb-whole">x = 24 GB</code> <data value="1">24 GB</data></p>'
    assert rtl(html) == html


def test_left_to_right_text_is_left_alone() -> None:
    html = "<p>up to 24 GB &amp; more &#8212; <br/>&lt;b&gt;</p><!-- a 2 -->"
    assert ltr(html) == html


def test_cells_of_a_plain_table_carry_the_title_of_their_column() -> None:
    shown = ltr("<table><tr><th>A <b>B</b></th><th>C</th></tr><tr><td>1</td><td>2</td></tr></table>")
    assert '<td data-label="A B">1</td><td data-label="C"><span>2</span></td>' in shown
    assert shown.startswith('<div class="table-scroll"><table>')
    assert shown.endswith("</table></div>")


def test_a_table_without_headings_is_named_by_its_first_column() -> None:
    head = "<thead><tr><th></th><th></th></tr></thead>"
    shown = ltr(f"<table>{head}<tbody><tr><td>A</td><td>1</td></tr></tbody></table>")
    assert "<thead>" not in shown
    assert '<tr><th scope="row">A</th><td>1</td></tr>' in shown


def test_the_title_of_a_column_is_repeated_in_each_row_up_to_a_hundred_characters() -> None:
    made = ltr(
        f"<table><thead><tr><th>a</th><th>{'b' * 9000}</th></tr></thead><tr><td>1</td><td>2</td></tr></table>"
    )
    assert f'data-label="{"b" * 100}"' in made
    assert len(made) < 9500


def test_a_table_with_a_class_is_left_alone() -> None:
    html = '<table class="own"><tr><th>A</th></tr><tr><td>1</td></tr></table>'
    assert ltr(html) == html


def test_the_link_beside_a_heading_is_named_in_the_language_of_the_text() -> None:
    html = '<h2 id="a">A<a class="headerlink" href="#a" title="Permanent link">#</a></h2>'
    assert 'aria-label="رابط"' in rtl(html)
    assert "Permanent link" not in rtl(html)


def test_a_table_of_records_brings_its_own_cards() -> None:
    html = '<div class="bb-table"><table><tr><th>A</th></tr><tr><td>1</td></tr></table></div>'
    assert ltr(html) == html


@pytest.mark.parametrize("code", ["lspci -vvv", "--shm-size", "a/b", "anon-rss"])
def test_short_code_stays_whole_where_it_could_break(code: str) -> None:
    assert ltr(f"<p><code>{code}</code></p>") == f'<p><code class="bb-whole">{code}</code></p>'


@pytest.mark.parametrize("code", ["loss", "torch.nn.functional.cross-entropy", "cuda:0"])
def test_code_that_is_long_or_holds_no_break_is_left_as_it_is(code: str) -> None:
    assert ltr(f"<p><code>{code}</code></p>") == f"<p><code>{code}</code></p>"
