"""What padding costs for sequences of uneven lengths: padded, grouped by length, packed."""
# /// script
# requires-python = ">=3.11"
# dependencies = ["torch>=2.11", "transformers>=5.23", "accelerate>=1.15", "numpy>=2.0"]
#
# [tool.benchbook]
# needs = ["accelerator", "cpu"]
# worth = 1
# timeout = 300
# repeats = 8
# environment = { MALLOC_MMAP_MAX_ = "0", MALLOC_TRIM_THRESHOLD_ = "100000000000" }
# [tool.benchbook.metrics]
# wasted_share = { unit = "1", better = "lower" }
# real_tokens_per_second = { unit = "tokens/s", better = "higher" }
# peak_memory = { unit = "B", better = "lower", memory = "device" }
# loss_difference = { unit = "1", better = "lower" }
# cached_loss_difference = { unit = "1" }
# [tool.benchbook.matrix]
# method = ["max_length", "longest", "grouped", "packed"]
# [tool.benchbook.on.accelerator]
# hidden_size = 2048
# layers = 8
# heads = 32
# key_value_heads = 8
# intermediate_size = 8192
# vocab_size = 128256
# sequences = 128
# longest = 2048
# median_length = 512
# [tool.benchbook.smallest]
# layers = 1
# vocab_size = 512
# sequences = 32
# [tool.benchbook.work]
# host_values = '''
# (2 * vocab_size * hidden_size + layers
#  * (hidden_size**2 * (2 + 2 * key_value_heads / heads) + 3 * hidden_size * intermediate_size))
# '''
# fp32 = '''
# (6.5 * (sequences + 2 * batch_size) * longest
#  * {'max_length': 1, 'longest': 0.78, 'grouped': 0.42, 'packed': 0.33}[method]
#  * (vocab_size * hidden_size + layers
#     * (hidden_size**2 * (2 + 2 * key_value_heads / heads) + 3 * hidden_size * intermediate_size
#        + 2 * hidden_size * longest * (3 if method == 'packed' else 1))))
# '''
# seconds = 3
# ///

# %% parameters
method = "max_length"
sequences = 128  # below eight batches, Trainer groups none
batch_size = 8  # padding needs lengths to differ within a batch
longest = 256
median_length = 64  # of a log-normal distribution with sigma 0.8, from 8 to `longest`
hidden_size = 256
layers = 4
heads = 4
key_value_heads = 2
intermediate_size = 768
vocab_size = 8192
seed = 42

# %% setup
import math
import random
import tempfile
import time
from itertools import accumulate

import torch
from torch.nn import functional
from tokenizers import Tokenizer
from tokenizers.models import WordLevel
from torch.profiler import ProfilerActivity, profile
from transformers import DataCollatorForSeq2Seq, DataCollatorWithFlattening
from transformers import LlamaConfig, LlamaForCausalLM, PreTrainedTokenizerFast
from transformers import Trainer, TrainingArguments, set_seed

device = torch.accelerator.current_accelerator(check_available=True) or torch.device(
    "cpu"
)
words = Tokenizer(WordLevel({"<pad>": 0}))
tokenizer = PreTrainedTokenizerFast(tokenizer_object=words, pad_token="<pad>")
set_seed(seed)
config = LlamaConfig(
    vocab_size=vocab_size,
    hidden_size=hidden_size,
    num_hidden_layers=layers,
    num_attention_heads=heads,
    num_key_value_heads=key_value_heads,
    intermediate_size=intermediate_size,
)
model = LlamaForCausalLM(config).to(device)
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-5, fused=True)

# %% data
drawn = [random.lognormvariate(math.log(median_length), 0.8) for _ in range(sequences)]
lengths = [min(max(round(length), 8), longest) for length in drawn]
rows = [torch.randint(1, vocab_size, (length,)).tolist() for length in lengths]
dataset = [{"input_ids": row, "labels": row} for row in rows]

# %% collators
padded = {"tokenizer": tokenizer, "max_length": longest}
collator = {
    "max_length": DataCollatorForSeq2Seq(padding="max_length", **padded),
    "longest": DataCollatorForSeq2Seq(padding="longest", **padded),
    "grouped": DataCollatorForSeq2Seq(padding="longest", **padded),
    "packed": DataCollatorWithFlattening(),
}[method]
strategy = "group_by_length" if method == "grouped" else "random"

# %% trainer
arguments = TrainingArguments(
    output_dir=tempfile.mkdtemp(),
    per_device_train_batch_size=batch_size,
    train_sampling_strategy=strategy,
    dataloader_pin_memory=False,
)
trainer = Trainer(model, arguments, train_dataset=dataset, data_collator=collator)
batches = list(trainer.get_train_dataloader())


# %% pytorch
def pack(rows):
    """One row without padding. Positions begin anew with each document."""
    return {
        "input_ids": torch.cat(rows)[None],
        "labels": torch.cat(
            [functional.pad(row[1:], (1, 0), value=-100) for row in rows]
        )[None],
        "position_ids": torch.cat([torch.arange(len(row)) for row in rows])[None],
    }


# %% step
def step(batch):
    loss = model(**batch, use_cache=False).loss
    loss.backward()
    optimizer.step()
    optimizer.zero_grad()
    return loss.item()  # waits for the device


# %% time
losses = [step(batches[-1])]  # warms up, and makes the optimizer states
begin = time.perf_counter()
losses += [step(batch) for batch in batches]
real_tokens_per_second = sum(lengths) / (time.perf_counter() - begin)
computed = sum(batch["input_ids"].numel() for batch in batches)
wasted_share = 1 - sum(lengths) / computed
print(f"{wasted_share:.1%} of {computed} tokens are padding")
print(f"{real_tokens_per_second:.0f} real tokens per second")

# %% peak
largest = max(batches, key=lambda batch: batch["input_ids"].numel())
if device.type == "cpu":
    states = [state for each in optimizer.state.values() for state in each.values()]
    inputs = [tensor for batch in batches for tensor in batch.values()]
    held = sum(tensor.nbytes for tensor in [*model.parameters(), *states, *inputs])
    with profile(activities=[ProfilerActivity.CPU], profile_memory=True) as profiled:
        step(largest)
    events = profiled.profiler.kineto_results.events()
    changes = [event for event in events if event.name() == "[memory]"]
    changes.sort(key=lambda event: event.start_ns())
    peak_memory = held + max(accumulate(event.nbytes() for event in changes))
else:
    torch.accelerator.reset_peak_memory_stats()
    step(largest)
    peak_memory = torch.accelerator.max_memory_allocated()
print(f"peak: {peak_memory / 2**20:.0f} MiB")


# %% same_losses
@torch.no_grad()
def token_losses(batch, use_cache=False):
    """The loss of each token that counts, in order."""
    logits = model(
        **{name: each for name, each in batch.items() if name != "labels"},
        use_cache=use_cache,
    ).logits
    labels = batch["labels"][:, 1:]
    each = functional.cross_entropy(
        logits[:, :-1].flatten(0, 1), labels.flatten(), reduction="none"
    )
    return each[labels.flatten() != -100]


def alone(batch):
    """The same losses with each sequence in a batch of its own."""
    kept = batch.get("attention_mask", torch.ones_like(batch["input_ids"])).bool()
    starts = batch["position_ids"][0] == 0 if "position_ids" in batch else None
    ids = batch["input_ids"]
    if starts is None:
        found = [row[mask] for row, mask in zip(ids, kept)]
    else:
        begins = starts.nonzero().flatten().tolist()
        found = ids[0].tensor_split(begins[1:])
    each = [{"input_ids": row[None], "labels": row[None]} for row in found]
    return torch.cat([token_losses(sequence) for sequence in each])


wanted = alone(batches[0])
loss_difference = (token_losses(batches[0]) - wanted).abs().max().item()
cached = token_losses(batches[0], use_cache=True)
cached_loss_difference = (cached - wanted).abs().max().item()
print(f"losses of tokens differ by {loss_difference:.1e} from each sequence alone")
print(f"with a cache, by {cached_loss_difference:.1e}")

# %% checks
expected = torch.accelerator.current_accelerator(check_available=True) or torch.device(
    "cpu"
)
assert model.device.type == batches[0]["input_ids"].device.type == expected.type
assert all(math.isfinite(loss) for loss in losses)
kept = [
    batch["attention_mask"].sum().item()
    if "attention_mask" in batch
    else batch["input_ids"].numel()
    for batch in batches
]
assert sum(kept) == sum(lengths) and len(wanted) > 0
assert loss_difference < 1e-3 * wanted.max().item()
if method == "packed":
    assert wasted_share == 0
    by_hand = pack([torch.tensor(row) for row in rows[:batch_size]])
    of_collator = collator(dataset[:batch_size])
    assert all(torch.equal(by_hand[name], of_collator[name]) for name in by_hand)
if method == "max_length":
    assert computed == sequences * longest
