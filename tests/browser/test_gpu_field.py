"""My GPU: what people type or paste is right, offered or refused, and never guessed."""

from __future__ import annotations

import tomllib
from pathlib import Path

import pytest
from playwright.sync_api import Page, expect

UNKNOWN = "Type a GPU's name or its memory in GB."
NAMES = tomllib.loads(Path(__file__).with_name("gpu_names.toml").read_text("utf-8"))


def test_every_way_of_naming_a_gpu_is_right_offered_or_refused(page: Page, site_url: str) -> None:
    page.goto(site_url + "memory_calculator/")
    wrong = {}
    for text, wanted in NAMES.items():
        field = page.locator("#calc-gpu")
        said = page.locator("#calc-gpu-said")
        field.fill("")
        field.press("Enter")
        expect(said).to_have_text("")
        field.fill(text)
        field.press("Enter")
        page.wait_for_function(
            "text => document.querySelector('#calc-gpu-said').textContent"
            " || new URLSearchParams(location.search).has('gpu')",
            arg=text,
        )
        chosen = "gpu=" in page.url
        offered = said.locator("button").all_inner_texts()
        found = field.input_value() if chosen else offered or said.inner_text()
        if found != (wanted or UNKNOWN):
            wrong[text] = found
    assert wrong == {}


def test_every_entry_of_the_list_is_understood_as_itself(page: Page, site_url: str) -> None:
    page.goto(site_url + "memory_calculator/")
    page.locator("#calc-gpu").focus()
    entries = page.locator("#calc-gpu-list option")
    expect(entries).not_to_have_count(0)
    wrong = page.evaluate(
        """async () => {
          const { understand } = await import("../assets/gpus.js");
          const rows = await (await fetch("../assets/gpus.json")).json();
          const entries = [...document.querySelectorAll("#calc-gpu-list option")].map((one) => one.value);
          const missing = rows.filter(({ name }) => !entries.some((entry) => entry.startsWith(`${name} · `)));
          return [...missing, ...entries.filter((entry) => understand(entry, rows).gpu?.label !== entry)];
        }"""
    )
    assert wrong == []


def test_the_verdict_is_of_what_is_typed_before_it_is_confirmed(page: Page, site_url: str) -> None:
    page.goto(site_url + "memory_calculator/?gpu=24")
    verdict = page.locator("#calc-verdict")
    # The least that a card of that size holds, for want of a name.
    expect(verdict).to_contain_text("of 22.5 GiB")
    field = page.locator("#calc-gpu")
    field.fill("h100")
    expect(verdict).to_contain_text("of 79.6 GiB")
    expect(field).to_have_value("h100")
    field.fill("no such thing")
    expect(verdict).to_contain_text("A GPU of 10 GB should hold it")
    expect(page.locator("#calc-gpu-said")).to_have_text(UNKNOWN)
    field.fill("3060")
    page.get_by_role("button", name="GeForce RTX 3060 · 12 GB").click()
    expect(verdict).to_contain_text("of 12 GiB")
    field.fill("4090")
    field.blur()
    expect(field).to_have_value("GeForce RTX 4090 · 24 GB")


def test_how_many_gpus_are_named_is_how_many_train(page: Page, site_url: str) -> None:
    page.goto(site_url + "memory_calculator/")
    page.locator("#calc-gpu").fill("2x T4")
    page.locator("#calc-gpu").press("Enter")
    expect(page.get_by_label("Number of GPUs")).to_have_value("2")
    expect(page.locator("#calc-gpu")).to_have_value("NVIDIA T4 · 16 GB")
    page.locator("#calc-gpu").fill("4090")
    page.locator("#calc-gpu").press("Enter")
    expect(page.get_by_label("Number of GPUs")).to_have_value("2")


def test_what_is_offered_is_chosen_with_one_tap(page: Page, site_url: str) -> None:
    page.goto(site_url + "memory_calculator/")
    page.locator("#calc-gpu").fill("3060")
    page.locator("#calc-gpu").press("Enter")
    page.get_by_role("button", name="GeForce RTX 3060 · 8 GB").click()
    expect(page.locator("#calc-gpu")).to_have_value("GeForce RTX 3060 · 8 GB")
    expect(page.locator("#calc-verdict")).to_contain_text("of 8 GiB")


def test_a_device_that_shares_its_memory_is_told_only_what_cannot_fit(page: Page, site_url: str) -> None:
    page.goto(site_url + "memory_calculator/?gpu=apple-m2-max-32")
    expect(page.locator("#calc-gpu-said")).to_contain_text("the system's too")
    expect(page.locator("#calc-verdict")).to_contain_text("of 32 GiB")
    expect(page.locator("#calc-verdict .bb-fits")).to_have_count(0)
    page.locator("[name=batch]").fill("200")
    expect(page.locator("#calc-verdict .bb-fits-not")).to_have_count(1)


def test_the_driver_leaves_less_than_a_card_is_sold_with(page: Page, site_url: str) -> None:
    page.goto(site_url + "memory_calculator/?gpu=t4-16")
    expect(page.locator("#calc-verdict")).to_contain_text("of 15 GiB")


@pytest.mark.parametrize(("gpu", "argument"), [("t4-16", "fp16"), ("v100-16", "fp16"), ("l4-24", "bf16")])
def test_lines_to_paste_are_those_that_the_gpu_computes(
    page: Page, site_url: str, gpu: str, argument: str
) -> None:
    page.goto(f"{site_url}perf_train_gpu_one/?gpu={gpu}")
    expect(page.locator("#bb-gpu")).not_to_have_value("")
    first = page.locator("article pre code", has_text="TrainingArguments").first
    expect(first).to_contain_text(f"{argument}=True")
    older = argument == "fp16"
    assert page.get_by_text("computes neither bf16 nor TF32 in hardware").is_visible() is older
    assert (page.get_by_text("Changed for NVIDIA").count() > 0) is older


def test_lines_to_paste_come_back_with_a_newer_gpu(page: Page, site_url: str) -> None:
    page.goto(f"{site_url}perf_train_gpu_one/?gpu=t4-16")
    first = page.locator("article pre code", has_text="TrainingArguments").first
    expect(first).to_contain_text("fp16=True")
    page.locator("#bb-gpu").fill("4090")
    page.locator("#bb-gpu").press("Enter")
    expect(first).to_contain_text("bf16=True")
    expect(page.locator(".bb-older")).to_have_count(0)
