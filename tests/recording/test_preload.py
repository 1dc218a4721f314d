"""What is imported ahead of a run may ask for the GPU, and starts nothing that a fork would not survive."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest

from benchbook.machines.nvml import Nvml
from benchbook.recording import preload
from benchbook.recording.hosts import Hosts, preload_names
from benchbook.recording.jobs import OK
from fakes import FakeGpu, FakeNvml
from running import parsed, run_in

AMPERE = FakeGpu("GPU-aaaa", bus="1", capability=(8, 0))
HOPPER = FakeGpu("GPU-bbbb", bus="2", capability=(9, 0))

# Makes torch see a GPU while the server imports, as one does that counts by NVML. Asking that GPU itself starts
# CUDA, which starts a thread.
SEES_A_GPU = """
import importlib.machinery
import os
import sys
import threading


def start(*_):
    threading.Thread(target=threading.Event().wait, daemon=True).start()
    return (9, 0)


def importing():
    return os.environ.get("PYTORCH_NVML_BASED_CUDA_CHECK") == "1"


class Finder:
    def find_spec(self, name, path, target=None):
        if name != "torch.cuda":
            return None
        spec = importlib.machinery.PathFinder.find_spec(name, path)
        load = spec.loader.exec_module

        def load_and_change(cuda):
            load(cuda)
            sys.modules["torch.version"].cuda = "13.0"
            cuda.is_available, cuda.device_count = importing, lambda: int(importing())
            cuda.get_device_capability = start

        spec.loader.exec_module = load_and_change
        return spec


sys.meta_path.insert(0, Finder())
"""

# As the library of some drivers does.
PYNVML = """
import threading


class NVMLError(Exception):
    pass


def nvmlInit():
    threading.Thread(target=threading.Event().wait, daemon=True).start()


def nvmlShutdown():
    pass


def nvmlDeviceGetCount():
    return 1


def nvmlDeviceGetHandleByIndex(index):
    return index


def nvmlDeviceGetCudaComputeCapability(handle):
    return [9, 0]
"""

TRAINING = """
# %% train
import sys
import tempfile

import torch
from transformers import BertConfig, BertForSequenceClassification, Trainer, TrainingArguments

config = BertConfig(hidden_size=8, num_hidden_layers=1, num_attention_heads=1, intermediate_size=8, vocab_size=16)
dataset = [{"input_ids": torch.arange(4), "labels": 0}] * 2
args = TrainingArguments(tempfile.mkdtemp(), max_steps=1, save_strategy="no", use_cpu=True, disable_tqdm=True)
trainer = Trainer(BertForSequenceClassification(config), args, train_dataset=dataset)
trainer.train()

# %% checks
assert trainer.state.global_step == 1
assert "bitsandbytes" in sys.modules
"""


@pytest.mark.parametrize(
    ("visible", "wanted"),
    [
        (None, [(8, 0), (9, 0)]),
        ("1,0", [(9, 0), (8, 0)]),
        ("1", [(9, 0)]),
        ("GPU-aaaa", [(8, 0)]),
        ("0,7,1", [(8, 0)]),
        ("", []),
    ],
)
def test_each_device_that_cuda_shows_has_its_own_capability(
    visible: str | None, wanted: list[tuple[int, int]]
) -> None:
    assert preload.capabilities(Nvml(FakeNvml(AMPERE, HOPPER)), visible) == wanted


def test_an_instance_has_the_capability_of_its_gpu() -> None:
    divided = FakeGpu("GPU-cccc", instances=[FakeGpu("MIG-dddd")], capability=(10, 0))
    assert preload.capabilities(Nvml(FakeNvml(divided)), "MIG-dddd") == [(10, 0)]


def test_torch_is_answered_by_nvml_only_while_it_lasts_and_in_a_process_of_its_own(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    asked_here = []

    def opened() -> Nvml:
        asked_here.append(os.getpid())
        return Nvml(FakeNvml(HOPPER))

    own = {
        "is_available": lambda: "by CUDA",
        "device_count": lambda: "by CUDA",
        "get_device_capability": lambda device=None: "by CUDA",
    }
    cuda = SimpleNamespace(**own)
    torch = SimpleNamespace(cuda=cuda, version=SimpleNamespace(cuda="13.0"))
    monkeypatch.setitem(sys.modules, "torch", torch)
    monkeypatch.setattr(preload, "open_nvml", opened)
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    with preload.answers_of_nvml():
        assert (cuda.is_available(), cuda.device_count()) == (True, 1)
        devices = (None, 0, SimpleNamespace(idx=0), SimpleNamespace(index=None), SimpleNamespace(index=0))
        assert [cuda.get_device_capability(device) for device in devices] == [(9, 0)] * 5
        assert {cuda.get_device_capability(device) for device in (1, -1, "cuda", "cuda:0")} == {"by CUDA"}
    assert not asked_here
    assert vars(cuda) == own

    torch.version.cuda = None
    with preload.answers_of_nvml():
        assert vars(cuda) == own


def test_a_torch_that_cannot_be_imported_is_left_to_the_script(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "torch.py").write_text("raise OSError('libcudart.so.13: cannot open shared object file')")
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.delitem(sys.modules, "torch", raising=False)
    monkeypatch.setattr(preload, "open_nvml", lambda: Nvml(FakeNvml(HOPPER)))
    preload.preload(["torch"])


def test_a_machine_without_nvml_is_left_as_it_is(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(preload, "open_nvml", lambda: None)
    monkeypatch.setitem(sys.modules, "torch", None)
    with preload.answers_of_nvml():
        pass


def test_trainer_with_bitsandbytes_starts_no_cuda_in_the_server_and_runs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "sitecustomize.py").write_text(SEES_A_GPU)
    (tmp_path / "pynvml.py").write_text(PYNVML)
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    names = preload_names(cell.source for cell in parsed(TRAINING).cells)
    with Hosts() as hosts:
        result = run_in(hosts.host({}, names, "small.py"), tmp_path, TRAINING)
    assert (result.outcome, result.failure) == (OK, None)
