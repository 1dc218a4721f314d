"""`benchbook predict` answers in a table or as JSON, and refuses with one line that names the file."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from architectures import BERT, LLAMA
from benchbook.cli.main import app
from benchbook.content.problems import BenchbookError
from benchbook.content.project import find_project
from benchbook.predictor import Sharding, Training, predict_ranks, prediction
from benchbook.predictor.command import predict_command
from benchbook.predictor.fake_accelerator import fake_accelerator
from benchbook.predictor.room import ASSUMED_CONTEXT, ASSUMED_FROM, room_of
from builders import write

pytestmark = pytest.mark.torch

GIB = 2**30
SMALL = Training(1, 16)


@pytest.fixture
def model(tmp_path: Path) -> Path:
    return write(tmp_path / "model.json", json.dumps(BERT))


def ask(*words: str) -> Any:
    return CliRunner().invoke(app, ["predict", *words])


def test_json_carries_bytes(model: Path) -> None:
    done = ask(str(model), "--batch", "2", "--sequence", "64", "--json")
    assert done.exit_code == 0
    found = json.loads(done.stdout)
    assert found["peak_allocated"] == sum(found["categories"].values()) + found["unexplained"]
    assert found["peak_reserved"] >= found["peak_allocated"]
    assert found["training"]["batch"] == 2


def test_people_get_a_table(model: Path) -> None:
    said = ask(str(model), "--sequence", "64").stdout
    for word in ("allocated", "reserved", "weights", "optimizer_states", "bert.encoder.layer.0"):
        assert word in said


def test_a_name_stands_for_a_model_of_the_handbook() -> None:
    done = ask("bert-base-uncased", "--sequence", "16", "--json")
    assert json.loads(done.stdout)["parameters"] > 100_000_000


def test_generation_is_asked_for_by_a_word(model: Path) -> None:
    done = ask("gpt2", "--inference", "--sequence", "16", "--new-tokens", "4", "--cache", "static", "--json")
    assert "cache" in json.loads(done.stdout)["categories"]


def test_a_context_that_nobody_measured_is_assumed(model: Path) -> None:
    measured, unmeasured = (
        json.loads(ask(str(model), "--sequence", "16", "--gpu", gpu, "--json").stdout)["gpu"]
        for gpu in ("V100", "L4")
    )
    assert (measured["context"], measured["context_measured"]) == (1343 * 2**20, True)
    assert measured["machine"] == "nvidia-v100-16gb--published"
    assert (unmeasured["context"], unmeasured["context_measured"]) == (ASSUMED_CONTEXT, False)
    assert unmeasured["room"] == unmeasured["memory"] - ASSUMED_CONTEXT


def test_people_are_told_what_is_assumed_and_from_where(model: Path) -> None:
    said = ask(str(model), "--sequence", "16", "--gpu", "L4").stdout
    assert "context of L4, assumed" in said
    assert ASSUMED_FROM in said
    assert ASSUMED_FROM not in ask(str(model), "--sequence", "16", "--gpu", "V100").stdout


def test_of_a_gpu_whose_memory_nobody_knows_it_says_so(model: Path) -> None:
    done = ask(str(model), "--sequence", "16", "--gpu", "RTX 4090", "--json")
    found = json.loads(done.stdout)["gpu"]
    assert (done.exit_code, found["memory"], found["room"], found["fits"]) == (0, None, None, None)


def test_what_does_not_fit_exits_with_1() -> None:
    words = ("bert-large-uncased", "--batch", "64", "--attention", "eager", "--gpu", "NVIDIA L4")
    done = ask(*words)
    assert done.exit_code == 1
    assert "does not fit L4" in done.stdout


def test_a_recorded_machine_is_a_gpu_too() -> None:
    room = room_of("nvidia-v100-16gb--published", find_project())
    assert room.memory == 16944988160
    assert room.available == 16944988160 - 1343 * 2**20


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("{", "model.json:1: is no JSON"),
        ('{"model_type":\n "bert",,}', "model.json:2: is no JSON"),
        ("[]", "is not an object"),
        ("{}", "names no model_type"),
        ('{"model_type": "bort"}', "knows no model_type 'bort'; use "),
        (json.dumps(BERT | {"num_attention_heads": 0}), "cannot build the model"),
        (json.dumps(BERT | {"hidden_size": -128}), "cannot build the model"),
    ],
)
def test_a_wrong_file_gets_one_line_with_a_fix(tmp_path: Path, text: str, said: str) -> None:
    path = write(tmp_path / "model.json", text)
    with pytest.raises(BenchbookError) as refused:
        predict_command(str(path), SMALL, "cuda", None, as_json=False)
    (problem,) = refused.value.problems
    assert said in str(problem)
    assert "\n" not in str(problem)


def test_an_unknown_name_gets_the_nearest_ones() -> None:
    with pytest.raises(BenchbookError, match="bert-large-uncased"):
        predict_command("bert-lage-uncased", SMALL, "cuda", None, as_json=False)


def test_a_torch_without_the_hook_says_so(model: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from torch.utils import backend_registration

    fake_accelerator.cache_clear()
    monkeypatch.delattr(backend_registration, "_setup_privateuseone_for_python_backend")
    with pytest.raises(BenchbookError, match=r"lacks the hook .*; install torch 2.11"):
        predict_command(str(model), SMALL, "cuda", None, as_json=False)
    assert prediction.predict(BERT, SMALL, device="cpu").peak_allocated > 0


@pytest.mark.parametrize(
    "words",
    [
        ["--batch", "0"],
        ["--precision", "fp8"],
        ["--optimizer", "adam"],
        ["--inference", "--checkpointing"],
        ["--inference", "--lora-rank", "4"],
        ["--new-tokens", "4"],
        ["--cache", "static"],
        ["--gpu", "H100", "--device", "cpu"],
        ["--dropout", "1.5"],
        ["--lora-rank", "0"],
    ],
)
def test_words_that_do_not_go_together_exit_with_2(words: list[str]) -> None:
    assert ask("gpt2", *words).exit_code == 2


def test_the_command_predicts_one_rank(
    tmp_path: Path,
) -> None:
    path = write(tmp_path / "config.json", json.dumps(LLAMA))
    done = ask(
        str(path), *["--sequence", "16", "--sharding", "fsdp2", "--ranks", "8", "--no-reshard", "--json"]
    )
    assert done.exit_code == 0
    found = json.loads(done.stdout)
    assert found["sharding"]["kind"] == "fsdp2"
    kept = predict_ranks(LLAMA, Training(1, 16), Sharding("fsdp2", 8, reshard_after_forward=False))
    assert found["peak_allocated"] == kept.peak_allocated
