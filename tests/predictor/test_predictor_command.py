"""`benchbook predict` answers in a table or as JSON, and refuses with one line that names the file."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from architectures import BERT, GPT2, LLAMA
from benchbook.cli.main import app
from benchbook.content.problems import BenchbookError
from benchbook.content.project import find_project
from benchbook.predictor import Inference, Sharding, Training, predict_ranks, prediction
from benchbook.predictor.command import predict_command
from benchbook.predictor.fake_accelerator import fake_accelerator
from benchbook.predictor.room import ASSUMED_CONTEXT, ASSUMED_FROM, room_of
from benchbook.predictor.workload import Device, Workload
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


# Each keeps its positions in a table of its own kind, and most of them would not notice without values.
BART = {"model_type": "bart", "d_model": 64, "encoder_layers": 1, "decoder_layers": 1, "vocab_size": 100}
ROBERTA = {**BERT, "model_type": "xlm-roberta", "architectures": ["XLMRobertaForMaskedLM"]}
DISTILBERT = {"model_type": "distilbert", "dim": 64, "n_layers": 1, "n_heads": 4, "vocab_size": 100}


@pytest.mark.parametrize(
    ("config", "longest", "fits", "too_long"),
    [
        (BERT | {"max_position_embeddings": 64}, 64, Training(1, 64), Training(1, 65)),
        (ROBERTA | {"max_position_embeddings": 66}, 64, Training(1, 64), Training(1, 65)),
        (DISTILBERT | {"max_position_embeddings": 64}, 64, Training(1, 64), Training(1, 65)),
        (GPT2 | {"n_positions": 64}, 64, Training(1, 64), Training(1, 65)),
        # The last of the new tokens is not read any more.
        (GPT2 | {"n_positions": 64}, 64, Inference(1, 60, 5), Inference(1, 60, 6)),
        (BART | {"max_position_embeddings": 64}, 64, Inference(1, 64, 64), Inference(1, 64, 65)),
        (BART | {"max_position_embeddings": 64}, 64, Training(1, 64), Training(1, 65)),
    ],
)
def test_a_sequence_longer_than_the_models_positions_gets_one_line(
    tmp_path: Path, config: dict[str, Any], longest: int, fits: Workload, too_long: Workload
) -> None:
    path = str(write(tmp_path / "model.json", json.dumps(config)))
    assert predict_command(path, fits, "cuda", None, as_json=True) == 0
    devices: tuple[Device, ...] = ("cuda", "cpu")
    for device in devices:
        with pytest.raises(BenchbookError) as refused:
            predict_command(path, too_long, device, None, as_json=False)
        (problem,) = refused.value.problems
        kind = config["model_type"]
        assert problem.what == f"{longest + 1} tokens are more than the {longest} positions of {kind}"
        assert problem.fix == f"give {longest} at most, or another model"


def test_a_rank_that_has_too_few_positions_gets_that_line_too(tmp_path: Path) -> None:
    path = str(write(tmp_path / "model.json", json.dumps(BERT | {"max_position_embeddings": 64})))
    with pytest.raises(BenchbookError, match="65 tokens are more than the 64 positions of bert"):
        predict_command(path, Training(1, 65), "cuda", None, as_json=False, sharding=Sharding("ddp", 2))


def test_positions_that_are_computed_have_no_end(tmp_path: Path) -> None:
    path = str(write(tmp_path / "model.json", json.dumps(LLAMA | {"max_position_embeddings": 64})))
    assert predict_command(path, Training(1, 65), "cuda", None, as_json=True) == 0


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
        ["--four-bit"],
        ["--objective", "ppo"],
        ["--objective", "grpo"],
        ["--completion", "8"],
        ["--inference", "--objective", "dpo"],
        ["--inference", "--evaluation", "4"],
        ["--evaluation", "0"],
    ],
)
def test_words_that_do_not_go_together_exit_with_2(words: list[str]) -> None:
    assert ask("gpt2", *words).exit_code == 2


def test_an_objective_is_asked_for_by_its_words(tmp_path: Path) -> None:
    done = ask(
        str(write(tmp_path / "config.json", json.dumps(LLAMA))),
        *["--sequence", "32", "--objective", "grpo", "--completion", "16", "--lora-rank", "4", "--four-bit"],
        "--json",
    )
    assert done.exit_code == 0
    asked = json.loads(done.stdout)["training"]
    assert (asked["objective"], asked["completion"], asked["lora"]["four_bit"]) == ("grpo", 16, True)


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


@pytest.mark.parametrize("words", [["nowhere"], ["bert-large-uncased", "--gpu", "nowhere"]])
def test_a_name_that_is_not_known_is_refused_before_torch_is_loaded(words: list[str]) -> None:
    code = (
        "import sys; from typer.testing import CliRunner; from benchbook.cli import main; "
        f"done = CliRunner().invoke(main.app, ['predict', *{words!r}, '--batch', '1', '--sequence', '8']); "
        "print(done.exit_code, 'torch' in sys.modules, 'nowhere' in str(done.exception))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["1", "False", "True"]
