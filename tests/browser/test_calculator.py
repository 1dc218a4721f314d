"""The memory calculator: what a reader chooses, what it says, and that the address holds it."""

from __future__ import annotations

import gzip
import json
import re
import struct
from collections.abc import Callable, Iterator
from pathlib import Path
from urllib.parse import parse_qsl
from zlib import crc32

import pytest
from playwright.sync_api import Page, expect

from benchbook.calculator.listing import coefficients_path, listed_models, load_coefficients
from benchbook.calculator.memory_model import calculate
from benchbook.calculator.points import draw_setups
from benchbook.content.project import Project
from benchbook.languages.language import load_language
from browser.addresses import DESKTOP, LANGUAGES, PHONE, ROOT, address

OpenPage = Callable[..., Page]
GUIDE = "memory_calculator"
BERT = {"model_type": "bert", "hidden_size": 1024, "num_hidden_layers": 24, "num_attention_heads": 16}
# What the script of the page computes, for each of many setups.
COMPUTE = """async ([folder, asked]) => {
  const { inference, training } = await import(`${folder}memory_model.js`);
  const found = [];
  for (const [name, setup] of asked) {
    const coefficients = await (await fetch(`${folder}coefficients/models/${name}.json`)).json();
    const compute = setup.mode === "inference" ? inference : training;
    const { at, total } = compute(coefficients, setup);
    found.push([at, Math.round(total)]);
  }
  return found;
}"""


def peak_bytes(page: Page) -> int:
    return int(page.locator("#calc-verdict data").first.get_attribute("value") or 0)


def shown_sum(page: Page) -> int:
    """The bytes of all rows of the table but the last, which sums them up."""
    rows = page.locator("#calc-parts tr:not([data-part=sum]) data")
    return sum(int(row.get_attribute("value") or 0) for row in rows.all())


def ready(page: Page) -> None:
    expect(page.locator("#calc-verdict")).not_to_be_empty()


def test_the_browser_computes_what_python_does(page: Page, site_url: str) -> None:
    project = Project(ROOT)
    models = {
        one.name: load_coefficients(coefficients_path(project, one.name)) for one in listed_models(project)
    }
    asked = draw_setups(models, 200, seed=3)
    page.goto(site_url + address("en", GUIDE))
    setups = [(name, vars(setup)) for name, setup in asked]
    found = page.evaluate(COMPUTE, ["../assets/", setups])
    expected = [calculate(models[name], setup) for name, setup in asked]
    assert [at for at, _ in found] == [one.at for one in expected]
    assert [total for _, total in found] == pytest.approx([one.total for one in expected], rel=1e-9)


@pytest.mark.parametrize("sharding", ["ddp", "zero1", "zero2", "zero3"])
def test_the_browser_shards_as_python_does(page: Page, site_url: str, sharding: str) -> None:
    project = Project(ROOT)
    model = listed_models(project)[-1]
    coefficients = load_coefficients(coefficients_path(project, model.name))
    ((_, drawn),) = draw_setups({model.name: {**coefficients, "inference": {}}}, 1, seed=4)
    setup = {**vars(drawn), "gpus": 8, "sharding": sharding}
    page.goto(site_url + address("en", GUIDE))
    ((at, total),) = page.evaluate(COMPUTE, ["../assets/", [(model.name, setup)]])
    expected = calculate(coefficients, type(drawn)(**setup))
    assert (at, total) == (expected.at, pytest.approx(expected.total, rel=1e-9))


def test_the_parts_and_the_allowance_add_up(page: Page, site_url: str) -> None:
    page.goto(site_url + address("en", GUIDE))
    ready(page)
    total = int(page.locator("#calc-parts [data-part=sum] data").get_attribute("value") or 0)
    assert abs(shown_sum(page) - total) <= 8
    assert total == pytest.approx(peak_bytes(page) * 1.05 + 2**30, abs=8)


def test_a_choice_is_kept_in_the_address_and_comes_back(open_page: OpenPage, site_url: str) -> None:
    page = open_page(site_url + address("en", GUIDE))
    ready(page)
    page.get_by_label("Architecture").select_option("llama-3.1-8b")
    page.get_by_label("Batch per GPU").fill("7")
    page.get_by_label("Activation checkpointing").check()
    page.get_by_label("My GPU").fill("h200")
    page.get_by_label("My GPU").press("Enter")
    expect(page).to_have_url(re.compile("gpu=h200-141"))
    for part in ("model=llama-3.1-8b", "batch=7", "checkpointing=1"):
        assert part in page.url
    again = open_page(page.url)
    ready(again)
    assert again.locator("#calc-verdict").inner_text() == page.locator("#calc-verdict").inner_text()
    assert again.get_by_label("Batch per GPU").input_value() == "7"
    assert again.get_by_label("Activation checkpointing").is_checked()


def test_the_gpu_chosen_on_another_page_is_the_one_here(page: Page, site_url: str) -> None:
    page.goto(site_url + address("en", GUIDE))
    ready(page)
    page.evaluate("localStorage.setItem('benchbook.gpu', '24')")
    page.goto(site_url + address("ja", GUIDE))
    ready(page)
    expect(page.locator("#calc-gpu")).to_have_value("24 GB")
    expect(page.locator("#calc-verdict")).to_contain_text("22.5\u00a0GiB")


@pytest.mark.parametrize(("gpu", "fits"), [("b200-180", "true"), ("4", "false")])
def test_it_says_whether_the_gpu_has_room(page: Page, site_url: str, gpu: str, fits: str) -> None:
    page.goto(f"{site_url}{address('en', GUIDE)}?gpu={gpu}")
    ready(page)
    expect(page.locator("#calc-verdict")).to_have_attribute("data-fits", fits)


def test_the_largest_batch_fits_and_the_next_one_does_not(page: Page, site_url: str) -> None:
    where = f"{site_url}{address('en', GUIDE)}?gpu=24&sequence=128"
    page.goto(where)
    ready(page)
    found = re.search(r"Largest batch that fits: ([\d,]+)", page.locator("#calc-verdict").inner_text())
    assert found is not None
    largest = int(found[1].replace(",", ""))
    for batch, fits in ((largest, "true"), (largest + 1, "false")):
        page.goto(f"{where}&batch={batch}")
        ready(page)
        expect(page.locator("#calc-verdict")).to_have_attribute("data-fits", fits)


@pytest.mark.parametrize("code", LANGUAGES)
@pytest.mark.parametrize(("objective", "counted"), [("dpo", "pairs"), ("grpo", "completions")])
def test_a_batch_is_told_in_what_its_objective_counts(
    page: Page, site_url: str, code: str, objective: str, counted: str
) -> None:
    text = load_language(ROOT / "docs", code).text
    where = f"{site_url}{address(code, GUIDE)}?model=gpt2&objective={objective}&sequence=512&batch=4"
    for gpu, name in (("24", f"calc_largest_{counted}"), ("2", f"calc_largest_none_{counted}")):
        page.goto(f"{where}&gpu={gpu}")
        ready(page)
        before, _, behind = text(name).partition("{batch}")
        said = page.locator("#calc-verdict").inner_text().replace("\u00a0", " ")
        assert re.search(re.escape(before) + (r"[\d,]+" if behind else "") + re.escape(behind), said), said
    accumulated = text(f"calc_change_accumulate_{counted}").partition("{batch}")[2].partition("{times}")[0]
    expect(page.locator("#calc-offers")).to_contain_text(accumulated)


def test_a_change_that_is_applied_holds_what_it_promised(page: Page, site_url: str) -> None:
    page.goto(f"{site_url}{address('en', GUIDE)}?gpu=8&attention=eager")
    ready(page)
    row = page.locator("#calc-offers tr").first
    promised = row.locator("data").get_attribute("value")
    row.get_by_role("button").click()
    expect(page.locator("#calc-verdict data").first).to_have_attribute("value", promised or "")
    expect(page.locator("#calc-verdict")).to_have_attribute("data-fits", "true")
    expect(page.locator("#calc-verdict")).to_be_focused()


@pytest.mark.parametrize(
    "asked",
    [
        "model=llama-3.1-70b&gpus=4&sharding=zero3&gpu=80",
        "model=gemma-2-2b&gpu=8&batch=8",
        "model=qwen3-30b-a3b&precision=fp32&batch=16&gpu=48",
        "model=pythia-1.4b&attention=eager&chunked=1&precision=bf16_autocast&accumulation=4&gpu=8",
        "model=qwen2.5-1.5b&objective=dpo&precision=bf16_autocast&gpus=4&sharding=zero3&gpu=24&batch=2",
        "model=llama-3.2-1b&method=lora&evaluation=64&gpu=16",
        "model=qwen3-0.6b&objective=grpo&batch=16&accumulation=4&completion=900&precision=fp32&gpu=16",
    ],
)
def test_every_change_that_is_applied_comes_to_what_it_promised(
    page: Page, site_url: str, asked: str
) -> None:
    where = f"{site_url}{address('en', GUIDE)}?{asked}&sequence=1024"
    page.goto(where)
    ready(page)
    promised = page.locator("#calc-offers tr").evaluate_all(
        "rows => rows.map((row) => row.querySelector('data').value)"
    )
    assert len(promised) > 3
    for place, total in enumerate(promised):
        page.goto(where)
        ready(page)
        page.locator("#calc-offers button").nth(place).click()
        expect(page.locator("#calc-verdict data").first).to_have_attribute("value", total)


def test_pairs_of_answers_leave_what_is_computed_for_them(page: Page, site_url: str) -> None:
    page.goto(
        f"{site_url}{address('en', GUIDE)}?model=gpt2&attention=eager&gpus=2&sharding=zero3&evaluation=4"
    )
    ready(page)
    whole = peak_bytes(page)
    page.get_by_label("Objective").select_option("dpo")
    expect(page.get_by_label("Pairs per GPU")).to_be_visible()
    expect(page.get_by_label("Attention")).to_have_value("sdpa")
    for label in ("Sharding", "Evaluation batch (0: none)"):
        expect(page.get_by_label(label)).to_be_hidden()
    expect(page.get_by_label("Loss in chunks (fused head)")).to_be_disabled()
    assert peak_bytes(page) != whole
    page.get_by_label("Architecture").select_option("bert-base-uncased")
    expect(page.get_by_label("Objective")).to_have_value("supervised")


def test_it_says_why_pairs_of_answers_can_take_less_than_supervised_training(
    page: Page, site_url: str
) -> None:
    asked = "model=llama-3.1-8b&method=lora&batch=4&sequence=2048&checkpointing=1"
    page.goto(f"{site_url}{address('en', GUIDE)}?{asked}")
    ready(page)
    supervised = peak_bytes(page)
    page.get_by_label("Objective").select_option("dpo")
    expect(page.locator("#calc-verdict")).to_contain_text("Less than SFT with Trainer takes here")
    assert peak_bytes(page) < supervised
    page.get_by_label("What trains").select_option("full")
    expect(page.locator("#calc-verdict")).not_to_contain_text("Less than SFT")


def test_completions_are_generated_before_a_step_and_are_part_of_the_sequence(
    page: Page, site_url: str
) -> None:
    page.goto(f"{site_url}{address('en', GUIDE)}?model=gpt2&evaluation=4&batch=16&sequence=1024")
    ready(page)
    expect(page.get_by_label("Tokens of the completion")).to_be_hidden()
    page.get_by_label("Objective").select_option("grpo")
    expect(page.get_by_label("Completions per GPU")).to_have_value("16")
    expect(page.get_by_label("Tokens of prompt + completion")).to_have_value("1024")
    expect(page.get_by_label("Evaluation batch (0: none)")).to_be_hidden()
    page.get_by_label("Accumulated batches").fill("16")
    page.get_by_label("Activation checkpointing").check()
    page.get_by_label("Tokens of the completion").fill("768")
    expect(page).to_have_url(re.compile("objective=grpo.*completion=768|completion=768.*objective=grpo"))
    expect(page.locator("#calc-verdict")).to_contain_text("at the last token")
    expect(page.locator("#calc-parts [data-part=cache]")).to_be_visible()
    expect(page.locator("#calc-parts [data-part=gradients]")).to_have_count(0)
    page.get_by_label("Tokens of the completion").fill("2000")
    expect(page.locator("#calc-said")).to_have_text(
        "At least one token is the prompt's: computed with a completion of 1,023."
    )


def save_picture(page: Page) -> tuple[bytes, list[str]]:
    """The picture of the result that is shown: its bytes, and each text that is drawn into it."""
    page.evaluate(
        """() => {
          window.drawn = [];
          const draw = CanvasRenderingContext2D.prototype.fillText;
          CanvasRenderingContext2D.prototype.fillText = function (text, ...rest) {
            window.drawn.push(text);
            return draw.call(this, text, ...rest);
          };
        }"""
    )
    with page.expect_download() as saved:
        page.locator("#calc-picture").click()
    return saved.value.path().read_bytes(), page.evaluate("window.drawn")


def chunks_of(png: bytes) -> Iterator[tuple[bytes, bytes]]:
    """The name and the content of each chunk of a PNG, whose checksums are right."""
    place = 8
    while place < len(png):
        length, name = struct.unpack_from(">I4s", png, place)
        content = png[place + 8 : place + 8 + length]
        assert struct.unpack_from(">I", png, place + 8 + length) == (crc32(name + content),)
        yield name, content
        place += length + 12


def comment_of(png: bytes) -> str:
    """What a PNG has as its comment."""
    (comment,) = (content for name, content in chunks_of(png) if name == b"tEXt")
    return comment.decode("ascii").removeprefix("Comment\0")


@pytest.mark.parametrize("code", LANGUAGES)
def test_a_result_is_saved_as_a_picture_with_the_setup_in_words_and_as_a_link(
    page: Page, site_url: str, code: str
) -> None:
    page.goto(f"{site_url}{address(code, GUIDE)}?model=llama-3.1-8b&gpu=24&batch=16#change-first")
    ready(page)
    png, texts = save_picture(page)
    assert png.startswith(b"\x89PNG")
    drawn = " ".join(texts)
    optimizer = load_language(ROOT / "docs", code).text("calc_optimizer_adamw_fused")
    for part in ("Llama 3.1 8B", "16", "512", optimizer, "24 GB"):
        assert part in drawn.replace("\u00a0", " ")
    said = page.locator("#calc-verdict data").first.inner_text()
    assert said in drawn
    assert "undefined" not in drawn
    link = comment_of(png)
    assert link == page.locator("#calc-link").get_attribute("data-copy")
    assert link in "".join(texts)
    page.goto(link)
    ready(page)
    expect(page.locator("#calc-verdict data").first).to_have_text(said)


def test_a_link_too_long_to_type_is_in_the_picture_all_the_same_and_its_dimensions_in_words(
    page: Page, site_url: str
) -> None:
    page.goto(f"{site_url}{address('en', GUIDE)}?model=own")
    ready(page)
    png, texts = save_picture(page)
    assert texts[-1] == site_url + address("en", GUIDE)
    sizes = ("hidden_size 2048", "num_hidden_layers 16", "num_key_value_heads 8", "vocab_size 128256")
    for part in (*sizes, "tie_word_embeddings", "Llama"):
        assert part in " ".join(texts)
    said = page.locator("#calc-verdict data").first.inner_text()
    page.goto(comment_of(png))
    ready(page)
    expect(page.locator("#calc-verdict data").first).to_have_text(said)


@pytest.mark.parametrize("more", ["", "&gpus=4", "&gpus=4&sharding=zero3"])
def test_paged_states_are_as_many_bytes_as_they_are_fewer_on_each_gpu(
    page: Page, site_url: str, more: str
) -> None:
    states = []
    for optimizer in ("adamw_8bit", "paged_adamw_8bit"):
        page.goto(f"{site_url}{address('en', GUIDE)}?model=gpt2&optimizer={optimizer}{more}")
        ready(page)
        row = page.locator("#calc-parts [data-part=optimizer_states] data")
        states.append(int(row.get_attribute("value") or 0) if row.count() else 0)
    said = page.locator("#calc-verdict data").last
    assert int(said.get_attribute("value") or 0) == pytest.approx(states[0] - states[1], abs=1024)


@pytest.mark.parametrize(
    ("gpu", "said"), [("t4-16", "Use fp16"), ("p100-16", "no tensor cores"), ("l4-24", "")]
)
def test_what_a_gpu_does_not_compute_is_said_with_the_verdict(
    page: Page, site_url: str, gpu: str, said: str
) -> None:
    page.goto(f"{site_url}{address('en', GUIDE)}?gpu={gpu}")
    ready(page)
    remark = page.locator("#calc-verdict .bb-older")
    expect(remark).to_have_count(1 if said else 0)
    if said:
        expect(remark).to_contain_text(said)


def test_what_does_not_fit_leads_to_what_would(page: Page, site_url: str) -> None:
    page.goto(f"{site_url}{address('en', GUIDE)}?gpu=4")
    ready(page)
    link = page.locator("#calc-verdict a")
    expect(link).to_have_text("What to change first")
    link.click()
    assert page.url.endswith("#change-first")


def test_changes_that_fit_stand_before_those_that_do_not(page: Page, site_url: str) -> None:
    page.goto(f"{site_url}{address('en', GUIDE)}?gpu=6")
    ready(page)
    marks = page.locator("#calc-offers tr").evaluate_all(
        "rows => rows.map((row) => row.querySelector('.bb-fits') !== null)"
    )
    assert marks == sorted(marks, reverse=True)
    assert True in marks


@pytest.mark.parametrize(
    "asked",
    [
        "gpu=24&batch=4&sequence=512",  # one change would be enough, on 32 GPUs
        "gpu=24&batch=4&sequence=512&gpus=2&sharding=zero3",
        "gpu=48&batch=4&sequence=512",
    ],
)
def test_what_the_same_hardware_can_do_stands_before_more_gpus(page: Page, site_url: str, asked: str) -> None:
    page.goto(f"{site_url}{address('en', GUIDE)}?model=llama-3.1-8b&{asked}")
    ready(page)
    rows = page.locator("#calc-offers tr:has(.bb-fits)").all_inner_texts()
    more = ["GPUs, everything sharded" in row for row in rows]
    assert more == sorted(more)
    assert more[0] is False
    page.locator("#calc-offers button").first.click()
    expect(page.locator("#calc-verdict")).to_have_attribute("data-fits", "true")
    assert page.get_by_label("Number of GPUs").input_value() == ("2" if "gpus=2" in asked else "1")


@pytest.mark.parametrize("sequence", [512, 4096])  # three changes are enough, or it takes more
def test_more_gpus_are_combined_only_where_the_same_hardware_cannot_do_it(
    page: Page, site_url: str, sequence: int
) -> None:
    page.goto(
        f"{site_url}{address('en', GUIDE)}?model=llama-3.1-70b&gpu=rtx-4090-24&batch=4&sequence={sequence}"
    )
    ready(page)
    first = page.locator("#calc-offers tr").first
    expect(first).to_contain_text("Together:")
    expect(first).to_contain_text("GPUs, everything sharded")


def test_a_sharding_that_leaves_results_alone_stands_before_what_trains_something_else(
    page: Page, site_url: str
) -> None:
    asked = "model=llama-3.2-1b&batch=2&sequence=2048&precision=fp32&gpus=2&gpu=28&checkpointing=1"
    page.goto(f"{site_url}{address('en', GUIDE)}?{asked}")
    ready(page)
    names = page.locator("#calc-offers tr:has(.bb-fits) th").all_inner_texts()
    places = [
        next(place for place, name in enumerate(names) if part in name)
        for part in ("Shard everything", "8-bit states", "LoRA")
    ]
    assert places == sorted(places)


@pytest.mark.parametrize("code", LANGUAGES)
def test_adapters_beside_experts_are_said_not_to_be_counted(page: Page, site_url: str, code: str) -> None:
    said = load_language(ROOT / "docs", code).text("calc_no_experts")
    for asked, count in (("olmoe-1b-7b&method=lora", 1), ("olmoe-1b-7b", 0), ("gpt2&method=lora", 0)):
        page.goto(f"{site_url}{address(code, GUIDE)}?model={asked}")
        ready(page)
        expect(page.locator("#calc-verdict a[href='#limits']", has_text=said)).to_have_count(count)


def test_what_is_proposed_leads_to_a_section_that_is_there(page: Page, site_url: str) -> None:
    page.goto(f"{site_url}{address('en', GUIDE)}?attention=eager&batch=8")
    ready(page)
    links = page.locator("#calc-offers a").evaluate_all("links => links.map((link) => link.href)")
    assert len(links) >= 5
    for link in sorted(set(links)):
        page.goto(link)
        assert page.locator(f"[id='{link.partition('#')[2]}']").count() == 1


def test_qlora_of_an_8b_on_24_gb_is_answered_in_two_taps(page: Page, site_url: str) -> None:
    page.goto(site_url + address("en", GUIDE))
    ready(page)
    page.get_by_role("link", name=re.compile("Llama 3.1 8B · QLoRA")).click()
    ready(page)
    expect(page.locator("#calc-verdict")).to_have_attribute("data-fits", "true")
    assert page.get_by_label("What trains").input_value() == "qlora"
    assert page.get_by_label("Precision").input_value() == "bf16"


@pytest.mark.parametrize("code", LANGUAGES)
def test_a_setup_to_begin_with_says_what_the_fields_of_the_form_say(
    page: Page, site_url: str, code: str
) -> None:
    page.goto(site_url + address(code, GUIDE))
    ready(page)
    link = page.locator(".calc-try a").first
    said = link.inner_text()
    link.click()
    ready(page)
    for name in ("batch", "sequence"):
        label = page.locator(f"#calc-{name} label").inner_text().strip()
        number = page.locator(f"#calc-in-{name}").input_value()
        assert re.search(rf"{re.escape(label)}[:：] ?{number} ·", said), said
    assert page.locator("[name=checkpointing]").locator("..").inner_text().strip() in said


def test_adapters_ask_for_their_rank_and_not_for_a_sharding(page: Page, site_url: str) -> None:
    page.goto(site_url + address("en", GUIDE) + "?gpus=4")
    ready(page)
    expect(page.get_by_label("Rank")).to_be_hidden()
    expect(page.get_by_label("Sharding")).to_be_visible()
    page.get_by_label("What trains").select_option("lora")
    expect(page.get_by_label("Rank")).to_be_visible()
    expect(page.get_by_label("Sharding")).to_be_hidden()
    before = page.locator("#calc-parts [data-part=optimizer_states] data").get_attribute("value")
    page.get_by_label("Rank").fill("64")
    expect(page.locator("#calc-parts [data-part=optimizer_states] data")).not_to_have_attribute(
        "value", before or ""
    )


@pytest.mark.parametrize("code", LANGUAGES)
@pytest.mark.parametrize(
    ("asked", "what"), [("objective=dpo", "DPO"), ("objective=grpo", "GRPO"), ("method=lora", "LoRA")]
)
def test_where_weights_are_never_sharded_it_says_so_and_leads_to_why(
    page: Page, site_url: str, code: str, asked: str, what: str
) -> None:
    page.goto(f"{site_url}{address(code, GUIDE)}?model=gpt2&gpus=4&{asked}")
    ready(page)
    said = load_language(ROOT / "docs", code).text("calc_replicas").replace("{what}", what)
    why = page.locator("#calc-said a")
    assert re.sub("[\u2066\u2069]", "", why.inner_text()).replace("\u00a0", " ") == said
    href = why.get_attribute("href") or ""
    assert page.locator(f"[id='{href.removeprefix('#')}']").count() == 1
    page.goto(f"{site_url}{address(code, GUIDE)}?model=gpt2&{asked}")
    ready(page)
    expect(page.locator("#calc-said")).to_be_empty()


@pytest.mark.parametrize(
    "more", ["", "&objective=dpo", "&objective=grpo&completion=1500", "&method=qlora&objective=dpo"]
)
def test_own_dimensions_are_computed_as_the_listed_model_of_them(
    page: Page, site_url: str, more: str
) -> None:
    asked = f"model=llama-3.1-8b&precision=bf16&batch=2&sequence=2048{more}"
    page.goto(f"{site_url}{address('en', GUIDE)}?{asked}")
    ready(page)
    listed = peak_bytes(page)
    config = (ROOT / "snippets" / "models" / "llama-3.1-8b.json").read_text("utf-8")
    page.get_by_label("Architecture").select_option("own")
    page.get_by_label("Dimensions, or a whole config.json").fill(config)
    expect(page.locator("#calc-config-said")).to_contain_text("Llama")
    expect(page).to_have_url(re.compile(str(json.loads(config)["intermediate_size"])))  # not the example's
    for name, value in parse_qsl(more):
        expect(page.locator(f"#calc-in-{name}")).to_have_value(value)
    assert peak_bytes(page) == pytest.approx(listed, rel=0.02)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("hidden_size = 3", "This is not JSON"),
        (json.dumps(BERT), "Missing: vocab_size"),
        (json.dumps({"num_local_experts": 8}), "from the list"),
        ("[]", "not an object"),
        ("null", "not an object"),
        (json.dumps({**BERT, "vocab_size": "30522"}), "could have: vocab_size"),
        (json.dumps({**BERT, "vocab_size": 30522, "num_hidden_layers": -2}), "could have: num_hidden_layers"),
        (json.dumps({**BERT, "vocab_size": 30522, "hidden_size": 10**12}), "could have: hidden_size"),
        (
            json.dumps({**BERT, "vocab_size": 30522, "hidden_size": 1000}),
            "hidden_size, num_attention_heads: the",
        ),
        (
            json.dumps({**BERT, "vocab_size": 30522, "num_key_value_heads": 5}),
            "num_attention_heads, num_key_value_heads: the",
        ),
        (json.dumps({**BERT, "model_type": "vit"}), "a model for images"),
    ],
)
def test_dimensions_that_cannot_be_read_are_told_apart(
    page: Page, site_url: str, text: str, said: str
) -> None:
    page.goto(f"{site_url}{address('en', GUIDE)}?model=own")
    field = page.get_by_label("Dimensions, or a whole config.json")
    field.fill(text)
    expect(page.locator("#calc-config-said")).to_contain_text(said)
    expect(field).to_have_attribute("aria-invalid", "true")
    expect(page.locator("#calc-result")).to_be_hidden()
    expect(page.locator("#calc-verdict")).to_have_text("No result for what is entered.")


def test_a_head_dim_settles_what_the_hidden_size_leaves_open(page: Page, site_url: str) -> None:
    page.goto(f"{site_url}{address('en', GUIDE)}?model=own")
    config = {**BERT, "vocab_size": 30522, "hidden_size": 1000, "head_dim": 64, "num_key_value_heads": None}
    page.get_by_label("Dimensions, or a whole config.json").fill(json.dumps(config))
    expect(page.locator("#calc-verdict")).to_contain_text("Peak:")


def test_the_verdict_says_that_the_part_for_images_is_left_out(page: Page, site_url: str) -> None:
    page.goto(f"{site_url}{address('en', GUIDE)}?model=own")
    ready(page)
    expect(page.locator("#calc-verdict")).not_to_contain_text("images")
    text = {"hidden_size": 2048, "num_hidden_layers": 4, "num_attention_heads": 16, "vocab_size": 32000}
    config = {"model_type": "llava", "text_config": text, "vision_config": {"hidden_size": 1024}}
    page.get_by_label("Dimensions, or a whole config.json").fill(json.dumps(config))
    left_out = page.locator("#calc-verdict a", has_text="without the part that reads images")
    expect(left_out).to_have_attribute("href", "#limits")


def test_an_encoder_is_trained_where_an_address_asks_it_to_generate(page: Page, site_url: str) -> None:
    problems: list[str] = []
    page.on("pageerror", lambda error: problems.append(str(error)))
    page.goto(f"{site_url}{address('en', GUIDE)}?model=bert-large-uncased&mode=inference")
    expect(page.locator("#calc-verdict")).to_contain_text("Peak:")
    expect(page.get_by_role("radio", name="Inference")).to_be_disabled()
    assert problems == []


def test_weights_are_served_in_16_bits_unless_a_reader_says_otherwise(page: Page, site_url: str) -> None:
    page.goto(f"{site_url}{address('en', GUIDE)}?model=llama-3.1-8b")
    ready(page)
    page.get_by_role("radio", name="Inference").check()
    expect(page.locator("#calc-in-precision")).to_have_value("bf16")
    page.goto(f"{site_url}{address('en', GUIDE)}?model=llama-3.1-8b&mode=inference&precision=fp32")
    expect(page.locator("#calc-in-precision")).to_have_value("fp32")


@pytest.mark.parametrize(
    ("asked", "precision"),
    [
        ("model=llama-3.1-8b", "bf16"),
        ("model=bert-large-uncased", "fp32"),
        # No scaled loss takes gradients in float16: the weights are kept in fp32.
        ("model=llama-2-7b", "bf16_autocast"),
        ("model=llama-3.1-8b&precision=fp32", "fp32"),
        ("model=bert-large-uncased&precision=bf16", "bf16"),
        ("model=llama-3.1-8b&gpu=t4-16", "bf16_autocast"),
        ("model=llama-3.1-8b&gpu=p100-16", "fp32"),
        ("model=llama-3.1-8b&gpu=t4-16&precision=bf16", "bf16"),
        # Trained, for it cannot generate.
        ("model=bert-large-uncased&mode=inference", "fp32"),
    ],
)
def test_all_weights_train_as_they_are_published_unless_a_link_says_otherwise(
    page: Page, site_url: str, asked: str, precision: str
) -> None:
    page.goto(f"{site_url}{address('en', GUIDE)}?{asked}")
    ready(page)
    expect(page.locator("#calc-in-precision")).to_have_value(precision)


def test_the_precision_follows_model_and_gpu_until_the_reader_chooses_one(page: Page, site_url: str) -> None:
    page.goto(site_url + address("en", GUIDE))
    ready(page)
    model, precision = page.get_by_label("Architecture"), page.get_by_label("Precision")
    gpu = page.get_by_label("My GPU")
    expect(precision).to_have_value("fp32")
    model.select_option("llama-3.2-1b")
    expect(precision).to_have_value("bf16")
    page.reload()
    ready(page)
    model.select_option("bert-large-uncased")
    expect(precision).to_have_value("fp32")
    model.select_option("llama-3.2-1b")
    gpu.fill("V100 32 GB")
    gpu.press("Enter")
    expect(precision).to_have_value("bf16_autocast")
    precision.select_option("bf16")
    model.select_option("bert-large-uncased")
    expect(page).to_have_url(re.compile("precision=bf16"))
    expect(precision).to_have_value("bf16")


def test_a_config_that_is_pasted_says_in_which_type_it_is_published(page: Page, site_url: str) -> None:
    page.goto(f"{site_url}{address('en', GUIDE)}?model=own")
    ready(page)
    expect(page.get_by_label("Precision")).to_have_value("fp32")
    config = json.loads((ROOT / "snippets" / "models" / "llama-3.1-8b.json").read_text("utf-8"))
    page.get_by_label("Dimensions, or a whole config.json").fill(
        json.dumps({**config, "torch_dtype": "bfloat16"})
    )
    expect(page.get_by_label("Precision")).to_have_value("bf16")


@pytest.mark.parametrize(
    ("asked", "named"),
    [
        ("method=qlora&gpu=t4-16", "fp16"),
        ("method=lora&gpu=gtx-1080-ti-11", "fp16"),
        ("mode=inference&gpu=t4-16", "fp16"),
        ("method=qlora&gpu=rtx-4090-24", "bf16"),
        ("method=qlora", "bf16"),
    ],
)
def test_what_is_kept_in_16_bits_is_called_what_the_gpu_computes(
    page: Page, site_url: str, asked: str, named: str
) -> None:
    page.goto(f"{site_url}{address('en', GUIDE)}?model=llama-3.1-8b&{asked}")
    ready(page)
    precision = page.locator("#calc-in-precision")
    assert precision.evaluate("one => one.selectedOptions[0].text") == named
    expect(page.locator("#calc-verdict .bb-older")).to_have_count(1 if named == "fp16" else 0)


def test_an_older_gpu_is_offered_no_bf16(page: Page, site_url: str) -> None:
    page.goto(f"{site_url}{address('en', GUIDE)}?model=llama-3.1-8b&gpu=t4-16")
    ready(page)
    offers = page.locator("#calc-offers")
    expect(offers).to_contain_text("LoRA of rank 16, the model in fp16")
    expect(offers).not_to_contain_text("bf16 weights")


def test_a_shared_link_leads_to_the_same_precision_on_another_gpu(
    page: Page, site_url: str, open_page: OpenPage
) -> None:
    page.goto(f"{site_url}{address('en', GUIDE)}?model=llama-3.1-8b")
    ready(page)
    link = page.locator("#calc-link").get_attribute("data-copy") or ""
    other = open_page(site_url + address("en", GUIDE))
    other.evaluate("localStorage.setItem('benchbook.gpu', 't4-16')")
    other.goto(link)
    ready(other)
    expect(other.locator("#calc-gpu")).to_have_value(re.compile("T4"))
    expect(other.get_by_label("Precision")).to_have_value("bf16")


def test_a_hostile_address_changes_nothing(page: Page, site_url: str) -> None:
    script = "<img src=x onerror=document.title=1>"
    query = {"model": "own", "config": script, "batch": "-3", "gpus": "1e99", "gpu": script, "mode": script}
    problems: list[str] = []
    page.on("pageerror", lambda error: problems.append(str(error)))
    encoded = page.evaluate("query => new URLSearchParams(query).toString()", query)
    page.goto(f"{site_url}{address('en', GUIDE)}?{encoded}")
    expect(page.locator("#calc-config-said")).to_contain_text("This is not JSON")
    assert page.locator("article img").count() == 0
    assert page.get_by_label("Batch per GPU").input_value() == "4"
    assert problems == []


@pytest.mark.parametrize("code", LANGUAGES)
def test_the_page_works_on_a_telephone_in_every_language(
    open_page: OpenPage, site_url: str, code: str
) -> None:
    page = open_page(
        f"{site_url}{address(code, GUIDE)}?gpu=24", viewport=PHONE, has_touch=True, is_mobile=True
    )
    ready(page)
    assert page.evaluate("document.documentElement.scrollWidth") <= PHONE["width"]
    for target in page.locator("#calc :is(select, input, label:has(input)), #calc-offers button").all():
        box = target.bounding_box() if target.is_visible() else None
        if box is not None and target.get_attribute("type") not in ("radio", "checkbox"):
            assert box["height"] >= 24


IN_SIGHT = """() => ["calc-verdict", "calc-brief"].some((id) => {
  const one = document.getElementById(id);
  const { top, bottom } = one.getBoundingClientRect();
  const whole = top >= 0 && bottom <= innerHeight && one.checkVisibility({ visibilityProperty: true });
  return whole && one.querySelector(".bb-fits, .bb-fits-not") !== null;
})"""
LARGE_PHONE = {"width": 390, "height": 844}


@pytest.mark.parametrize("code", LANGUAGES)
def test_the_verdict_is_in_sight_on_a_telephone_once_a_setup_is_tapped(
    open_page: OpenPage, site_url: str, code: str
) -> None:
    page = open_page(site_url + address(code, GUIDE), viewport=LARGE_PHONE, has_touch=True, is_mobile=True)
    ready(page)
    page.locator(".calc-try a").first.tap()
    page.wait_for_url(re.compile("method=qlora"))
    page.wait_for_function(IN_SIGHT)


@pytest.mark.parametrize("code", LANGUAGES)
def test_the_verdict_stays_in_sight_and_covers_no_field_that_has_the_focus(
    open_page: OpenPage, site_url: str, code: str
) -> None:
    page = open_page(
        f"{site_url}{address(code, GUIDE)}?model=llama-3.1-8b&gpu=24&gpus=2",
        **{"viewport": LARGE_PHONE, "has_touch": True, "is_mobile": True},
    )
    ready(page)
    for field in page.locator("#calc :is(input, select)").all():
        if not field.is_visible():
            continue
        field.focus()
        page.wait_for_function(IN_SIGHT)
        assert field.evaluate(
            """one => {
              const { x, y, width, height } = one.getBoundingClientRect();
              const ends = [y + 2, y + height - 2].map((end) => document.elementFromPoint(x + width / 2, end));
              return ends.every((found) => found === one || one.closest("label")?.contains(found));
            }"""
        ), field.get_attribute("name")


# Whether a choice is wide enough for each of its texts: beside it, one that is as wide as the text.
CUT_OFF = """() => [...document.querySelectorAll("#calc select")].filter((one) => one.checkVisibility())
  .flatMap((one) => [...one.options].filter((option) => {
    const alone = one.cloneNode(false);
    alone.append(option.cloneNode(true));
    alone.style.cssText = "inline-size: max-content; flex: none";
    one.after(alone);
    const width = alone.offsetWidth;
    alone.remove();
    return width > one.offsetWidth;
  }).map((option) => option.text))"""


@pytest.mark.parametrize("code", LANGUAGES)
@pytest.mark.parametrize("viewport", [PHONE, LARGE_PHONE, DESKTOP], ids=["phone", "large phone", "desktop"])
def test_no_choice_is_cut_off_and_all_run_one_way(
    open_page: OpenPage, site_url: str, code: str, viewport: dict[str, int]
) -> None:
    page = open_page(f"{site_url}{address(code, GUIDE)}?model=gpt2&gpus=2", viewport=viewport)
    ready(page)
    assert page.evaluate(CUT_OFF) == []
    directions = page.locator("#calc select").evaluate_all(
        "all => all.map((one) => getComputedStyle(one).direction)"
    )
    assert set(directions) == {"rtl" if code == "ar" else "ltr"}


@pytest.mark.parametrize("gpu", ["rtx-4090-24", "t4-16", "gtx-1080-ti-11", "h100-80", "6"])
def test_what_a_gpu_has_room_for_is_what_the_calculator_says_of_it(
    page: Page, site_url: str, gpu: str
) -> None:
    page.goto(f"{site_url}{address('en', GUIDE)}?gpu={gpu}")
    ready(page)
    rows = page.locator("#calc-fitting li")
    expect(rows).to_have_count(5)
    assert rows.last.is_visible()
    links = rows.locator("a").evaluate_all("all => all.map((one) => one.href)")
    told = rows.locator("data").all_inner_texts()
    assert len(links) == len(told) == 5 - rows.filter(has_text="not even with QLoRA").count()
    for link, size in zip(links, told, strict=True):
        page.goto(link)
        ready(page)
        expect(page.locator("#calc-verdict")).to_have_attribute("data-fits", "true")
        expect(page.locator("#calc-verdict")).to_contain_text(f"{size} of")
        method = page.get_by_label("What trains").input_value()
        if method == "qlora":
            page.get_by_label("What trains").select_option("lora")
            expect(page.locator("#calc-verdict")).to_have_attribute("data-fits", "false")


@pytest.mark.parametrize("code", LANGUAGES)
def test_what_a_gpu_can_train_is_answered_in_a_tap_from_where_it_is_named(
    open_page: OpenPage, site_url: str, code: str
) -> None:
    page = open_page(site_url + address(code))
    way = page.locator("#bb-gpu-fitting")
    expect(way).to_be_hidden()
    page.locator("#bb-gpu").fill("4090")
    way.click()
    expect(page.locator("#calc-gpu")).to_have_value(re.compile("RTX 4090"))
    expect(page.locator("#calc-fitting li").last).to_be_in_viewport()


def test_what_a_gpu_can_train_is_no_question_once_a_model_is_chosen(page: Page, site_url: str) -> None:
    page.goto(f"{site_url}{address('en', GUIDE)}?gpu=24&model=gpt2")
    ready(page)
    expect(page.locator("#calc-fitting summary")).to_be_visible()
    expect(page.locator("#calc-fitting ul")).to_be_hidden()


@pytest.mark.parametrize("code", LANGUAGES)
def test_whether_it_fits_leads_to_the_calculator_with_the_gpu_that_is_chosen(
    open_page: OpenPage, site_url: str, code: str
) -> None:
    page = open_page(site_url + address(code))
    page.locator("#bb-gpu").fill("24")
    page.locator("#bb-gpu").press("Enter")
    page.locator(".symptoms a[href='#will-it-fit']").click()
    page.locator("#will-it-fit + p a").first.click()
    page.wait_for_url(re.compile(GUIDE))
    expect(page.locator("#calc-gpu")).to_have_value("24 GB")


@pytest.mark.parametrize("code", LANGUAGES)
def test_digits_are_western_and_numbers_run_from_left_to_right(page: Page, site_url: str, code: str) -> None:
    page.goto(f"{site_url}{address(code, GUIDE)}?gpu=24&batch=1200")
    ready(page)
    said = page.locator("#calc-verdict").inner_text()
    assert re.search(r"\d", said)
    assert not re.search("[\u0660-\u0669\u06f0-\u06f9]", said)
    assert page.locator("#calc-verdict data").first.get_attribute("dir") == "ltr"


def test_every_choice_is_reached_and_made_with_the_keyboard(page: Page, site_url: str) -> None:
    page.goto(site_url + address("en", GUIDE))
    ready(page)
    before = peak_bytes(page)
    page.get_by_label("Architecture").focus()
    names = []
    for _ in range(9):
        page.keyboard.press("Tab")
        names.append(page.evaluate("document.activeElement.name"))
    assert names[:5] == ["mode", "method", "objective", "precision", "attention"]
    page.get_by_label("Activation checkpointing").focus()
    page.keyboard.press("Space")
    expect(page.locator("#calc-verdict data").first).not_to_have_attribute("value", str(before))


@pytest.mark.parametrize("code", LANGUAGES)
def test_without_a_script_it_says_what_it_needs_and_shows_its_errors(
    open_page: OpenPage, site_url: str, code: str
) -> None:
    page = open_page(site_url + address(code, GUIDE), java_script_enabled=False)
    assert page.locator("noscript p").is_visible()
    assert "JavaScript" in page.locator("noscript p").inner_text()
    assert not page.locator("#calc").is_visible()
    assert page.locator("#errors ~ .bb-table").first.locator("tbody tr").count() >= 4


def test_whoever_has_a_script_never_finds_that_it_is_switched_off(site: Path) -> None:
    said = load_language(ROOT / "docs", "en").text("calc_needs_script")
    fragments = [gzip.decompress(path.read_bytes()) for path in site.rglob("en_*.pf_fragment")]
    assert any(b"calculator" in text for text in fragments)
    assert [text for text in fragments if said.encode() in text] == []


def test_the_scripts_are_small_and_ask_no_other_host(page: Page, site: Path, site_url: str) -> None:
    asked: list[str] = []
    page.on("request", lambda request: asked.append(request.url))
    page.goto(site_url + address("en", GUIDE), wait_until="networkidle")
    assert [url for url in asked if not url.startswith(site_url)] == []
    scripts = ("calculator.js", "memory_model.js", "dimensions.js")
    assert sum((site / "assets" / name).stat().st_size for name in scripts) < 50_000


def test_a_file_that_cannot_be_loaded_is_said(page: Page, site_url: str) -> None:
    page.route("**/coefficients/**", lambda route: route.abort())
    page.goto(site_url + address("en", GUIDE))
    expect(page.locator("#calc-verdict")).to_contain_text("could not be loaded")


def test_what_is_no_number_is_told_with_what_is_computed_instead(page: Page, site_url: str) -> None:
    page.goto(f"{site_url}{address('en', GUIDE)}?batch=7")
    ready(page)
    page.get_by_label("Batch per GPU").fill("-3")
    field, said = page.get_by_label("Batch per GPU"), page.locator("#calc-batch-said")
    expect(said).to_have_text("Enter a whole number from 1 to 1,000,000: computed with 7.")
    expect(field).to_have_attribute("aria-invalid", "true")
    assert said.get_attribute("id") in (field.get_attribute("aria-describedby") or "").split()
    unused = "Batch per GPU: what is entered there was not used; computed with 7."
    expect(page.locator("#calc-verdict")).to_contain_text(unused)
    field.fill("3")
    expect(said).to_be_empty()
    expect(field).to_have_attribute("aria-invalid", "false")
    expect(page.locator("#calc-verdict")).not_to_contain_text("not used")


def test_a_number_that_no_run_has_is_not_computed_with(page: Page, site_url: str) -> None:
    page.goto(site_url + address("en", GUIDE))
    ready(page)
    before = peak_bytes(page)
    page.get_by_label("Batch per GPU").fill("1000001")
    expect(page.locator("#calc-batch-said")).to_contain_text("computed with 4")
    assert peak_bytes(page) == before


def test_the_gpu_of_another_s_link_is_not_kept(page: Page, site_url: str) -> None:
    page.goto(f"{site_url}{address('en', GUIDE)}?gpu=24")
    ready(page)
    expect(page.locator("#calc-gpu")).to_have_value("24 GB")
    page.goto(site_url + address("ja", GUIDE))
    ready(page)
    expect(page.locator("#calc-gpu")).to_have_value("")
