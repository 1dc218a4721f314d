"""What two runs need in common to end with the same bits, and what deterministic algorithms cost."""
# /// script
# requires-python = ">=3.11"
# dependencies = ["torch>=2.11", "transformers>=5.23", "numpy>=2.0"]
#
# [tool.benchbook]
# needs = ["cpu"]
# timeout = 300
# repeats = 8
# earlier_checks = ["sha256:d26d3810dd1c644de4e0c489363189544a4cae515528f3012a715305b861cf12"]
# environment = { MALLOC_MMAP_MAX_ = "0", MALLOC_TRIM_THRESHOLD_ = "100000000000" }
# [tool.benchbook.metrics]
# steps = { unit = "count" }
# differing = { unit = "1", better = "lower" }
# loss_difference = { unit = "1" }
# step_seconds = { unit = "s", better = "lower" }
# [tool.benchbook.matrix]
# change = ["nothing", "deterministic", "no_seed", "threads", "micro_batches", "workers", "drawn"]
# [tool.benchbook.smallest]
# steps = 2
# ///

# %% parameters
change = "nothing"  # what the second run does otherwise
batch_size = 16
sequence_length = 64
hidden_size = 128
layers = 4
vocab_size = 1024
steps = 20
seed = 42

# %% setup
import subprocess
import sys
import time

import torch
from torch.utils.data import DataLoader, Dataset
from transformers import LlamaConfig, LlamaForCausalLM

threads = torch.get_num_threads()
texts = torch.randint(vocab_size, (steps * batch_size, sequence_length))


class Noisy(Dataset):
    """Texts in which one token of ten is drawn anew whenever they are read."""

    def __len__(self):
        return len(texts)

    def __getitem__(self, index):
        drawn = torch.rand(sequence_length) < 0.1
        return torch.where(
            drawn, torch.randint(vocab_size, (sequence_length,)), texts[index]
        )


# %% run
def run(change):
    """Train anew; return all weights, the last loss and the seconds a step takes."""
    torch.use_deterministic_algorithms(change == "deterministic")
    torch.set_num_threads(max(1, threads // 2) if change == "threads" else threads)
    if change == "no_seed":
        torch.seed()
    else:
        # region seed
        from transformers import set_seed

        # Python's, NumPy's and PyTorch's, on every device
        set_seed(seed)
        # endregion
    model = LlamaForCausalLM(
        LlamaConfig(
            vocab_size=vocab_size,
            hidden_size=hidden_size,
            intermediate_size=4 * hidden_size,
            num_hidden_layers=layers,
            num_attention_heads=4,
            num_key_value_heads=4,
        )
    ).train()
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3, fused=True)
    workers = {"num_workers": 1, "multiprocessing_context": "fork"}
    loader = DataLoader(
        Noisy(),
        batch_size=batch_size,
        shuffle=True,
        **(workers if change == "workers" else {}),
    )
    parts = 2 if change == "micro_batches" else 1
    seconds = 0.0
    for number, batch in enumerate(loader):
        begin = time.perf_counter()
        loss = 0.0
        for part in batch.chunk(parts):
            part_loss = model(input_ids=part, labels=part).loss / parts
            part_loss.backward()
            loss += part_loss.item()
        optimizer.step()
        optimizer.zero_grad()
        if change == "drawn" and number == 0:
            torch.rand(1)  # as a sample drawn in an evaluation
        if number:
            seconds += time.perf_counter() - begin
    weights = torch.cat([weight.detach().flatten() for weight in model.parameters()])
    return weights, loss, seconds / (number or 1)


# %% both
weights, loss, _ = run("nothing")
changed_weights, changed_loss, step_seconds = run(change)
differing = (weights != changed_weights).float().mean().item()
loss_difference = abs(loss - changed_loss)
print(
    f"{change}: {differing:.1%} of the weights differ, the loss by {loss_difference:.2g}"
)

# %% versions
# region environment
report = [sys.executable, "-m", "torch.utils.collect_env"]
# endregion
if change == "nothing":
    environment = subprocess.run(
        report, capture_output=True, text=True, check=True
    ).stdout

# %% checks
assert weights.isfinite().all()
assert changed_weights.isfinite().all()
if change in ("nothing", "deterministic"):
    assert differing == 0
    assert loss_difference == 0
elif change == "threads":
    # One CPU's kernels add in the same order whatever the threads, another's do not.
    assert loss_difference < 1e-3, loss_difference
else:
    assert differing > 0.1, differing
if change == "nothing":
    assert f"PyTorch version: {torch.__version__}" in environment
torch.use_deterministic_algorithms(False)
