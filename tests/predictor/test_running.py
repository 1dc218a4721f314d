"""A script is predicted by its own lines: as much as torch's profiler counts where they really run."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from torch.profiler import ProfilerActivity, profile, record_function

from benchbook.content.script import PARAMETERS, Script, read_script
from benchbook.predictor.running import predict_script
from benchbook.predictor.workload import ScriptRun, UnpredictableError
from builders import write

pytestmark = pytest.mark.torch

HEAD = '''"""Train a little."""
# /// script
# requires-python = ">=3.11"
# dependencies = ["torch"]
# [tool.benchbook.metrics]
# loss = { unit = "count" }
# ///

# %% parameters
width = 64

# %% model
import torch

device = torch.accelerator.current_accelerator(check_available=True) or torch.device("cpu")
torch.manual_seed(0)
with device:
    model = torch.nn.Sequential(torch.nn.Linear(width, 4096), torch.nn.GELU(), torch.nn.Linear(4096, width))
optimizer = torch.optim.AdamW(model.parameters(), foreach=True)
batch = torch.randn(32, width, device=device)

'''
TRAIN = """# %% train
losses = []
for _ in range(3):
    for _ in range(2):
        output = model(batch)
        loss = output.square().mean()
        loss.backward()
        losses.append(loss.detach())
    optimizer.step()
    optimizer.zero_grad()

"""
CHECKS = """# %% checks
loss = losses[-1].item()
assert loss < losses[0].item()
"""
WIDTH = 256
WEIGHTS = 4 * (2 * WIDTH * 4096 + 4096 + WIDTH)


def script(root: Path, text: str) -> tuple[Script, Path]:
    path = root / "snippets/sums/add.py"
    write(path, text)
    return read_script(path, root), path


def really_held(read: Script, parameters: dict[str, int]) -> int:
    """The most that the CPU's allocator held from the cell on that trains."""
    names: dict[str, object] = {"__name__": "__main__"}
    with profile(activities=[ProfilerActivity.CPU], profile_memory=True) as seen:
        for cell in read.cells[:-1]:
            with record_function(cell.name):
                exec(cell.source, names)
            if cell.name == PARAMETERS:
                names |= parameters
    assert seen.profiler is not None
    events = seen.profiler.kineto_results.events()
    start = next(event.start_ns() for event in events if event.name() == "train")
    held = most = 0
    for moment, change in sorted((e.start_ns(), e.nbytes()) for e in events if e.name() == "[memory]"):
        held += change
        most = max(most, held if moment >= start else 0)
    return most


def test_a_script_takes_what_the_profiler_counts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    read, path = script(tmp_path, HEAD + TRAIN + CHECKS)
    # A fake one may be there, from predictions before.
    monkeypatch.setattr(torch.accelerator, "current_accelerator", lambda check_available=False: None)
    found = predict_script(read, path, {"width": WIDTH}, ScriptRun("train"), "cpu")
    assert found.peak_allocated == pytest.approx(really_held(read, {"width": WIDTH}), abs=2048)


def test_what_a_script_makes_is_told_apart(tmp_path: Path) -> None:
    read, path = script(tmp_path, HEAD + TRAIN + CHECKS)
    found = predict_script(read, path, {"width": WIDTH}, ScriptRun("train"))
    assert list(found.moments) == ["model", "forward", "backward", "step"]
    assert found.parameters * 4 == WEIGHTS
    assert found.moment == "step"
    for category, most in (("weights", 1), ("gradients", 1), ("optimizer_states", 2)):
        assert found.categories[category] == pytest.approx(most * WEIGHTS, rel=0.01)


def test_the_default_type_is_that_of_before(tmp_path: Path) -> None:
    read, path = script(
        tmp_path,
        HEAD + TRAIN.replace("losses = []", "losses = []\ntorch.set_default_dtype(torch.bfloat16)") + CHECKS,
    )
    predict_script(read, path, {"width": WIDTH}, ScriptRun("train"))
    assert torch.get_default_dtype() == torch.float32


@pytest.mark.parametrize(
    ("text", "until", "wrong"),
    [
        (HEAD + TRAIN + CHECKS, "evaluate", "has no cell evaluate"),
        (
            HEAD.replace("model =", "net =").replace("model.", "net.") + TRAIN + CHECKS,
            "train",
            "makes no model",
        ),
        (HEAD + TRAIN.replace("loss.detach()", "loss.item()") + CHECKS, "train", "asks for values"),
    ],
)
def test_a_script_that_cannot_be_predicted_says_why(
    tmp_path: Path, text: str, until: str, wrong: str
) -> None:
    read, path = script(tmp_path, text)
    with pytest.raises(UnpredictableError, match=wrong):
        predict_script(read, path, {"width": WIDTH}, ScriptRun(until))
