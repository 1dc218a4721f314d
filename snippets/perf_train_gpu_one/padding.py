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
# hidden_size = 1024
# layers = 2
# heads = 16
# key_value_heads = 4
# intermediate_size = 4096
# longest = 1024
# median_length = 256
# repeats = 3
# [tool.benchbook.smallest]
# layers = 1
# vocab_size = 512
# sequences = 32
# [tool.benchbook.work]
# fp32 = '''
# (6.5 * (sequences + 2 * batch_size) * longest
#  * {'max_length': 1, 'longest': 0.78, 'grouped': 0.42, 'packed': 0.33}[method]
#  * (vocab_size * hidden_size + layers
#     * (hidden_size**2 * (2 + 2 * key_value_heads / heads) + 3 * hidden_size * intermediate_size
#        + 2 * hidden_size * longest * (3 if method == 'packed' else 1))))
# '''
# seconds = 0.3
# ///

# %% parameters
method = "max_length"
sequences = 128  # below eight batches, Trainer groups none
batch_size = 8  # as in the lines to paste; lengths must differ within a batch
longest = 256
median_length = 64  # of a log-normal distribution with sigma 0.8, from 8 to `longest`
hidden_size = 256
layers = 2
heads = 4
key_value_heads = 2
intermediate_size = 768
vocab_size = 4096
seed = 42

# %% setup
import math
import random
import time
from functools import partial
from itertools import accumulate

import torch
import transformers
from tokenizers import Tokenizer
from tokenizers.models import WordLevel
from torch.nn.functional import cross_entropy
from torch.profiler import ProfilerActivity, profile
from transformers import LlamaConfig, LlamaForCausalLM, PreTrainedTokenizerFast
from transformers import Trainer, set_seed

device = torch.accelerator.current_accelerator(check_available=True) or torch.device(
    "cpu"
)
TrainingArguments = partial(
    transformers.TrainingArguments,
    dataloader_pin_memory=False,
    use_cpu=device.type == "cpu",
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
with device:
    model = LlamaForCausalLM(config)
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-5, fused=True)

# %% data
drawn = [random.lognormvariate(math.log(median_length), 0.8) for _ in range(sequences)]
lengths = [min(max(round(length), 8), longest) for length in drawn]
rows = [torch.randint(1, vocab_size, (length,)).tolist() for length in lengths]
dataset = [{"input_ids": row} for row in rows]
if method == "max_length":  # as from tokenizer(..., padding="max_length")
    dataset = [
        dict(tokenizer.pad(row, padding="max_length", max_length=longest))
        for row in dataset
    ]

# %% trainer
match method:
    case "longest":
        # region trainer_longest
        from transformers import DataCollatorForLanguageModeling

        # Pads to the longest of the batch.
        collator = DataCollatorForLanguageModeling(
            tokenizer,
            mlm=False,
        )
        args = TrainingArguments(
            output_dir="output",
            per_device_train_batch_size=8,
        )
        trainer = Trainer(
            model,
            args,
            train_dataset=dataset,
            data_collator=collator,
        )
        # endregion
    case "grouped":
        from transformers import DataCollatorForLanguageModeling

        collator = DataCollatorForLanguageModeling(tokenizer, mlm=False)
        # region trainer_grouped
        args = TrainingArguments(
            output_dir="output",
            per_device_train_batch_size=8,
            train_sampling_strategy="group_by_length",
        )
        # endregion
        trainer = Trainer(model, args, train_dataset=dataset, data_collator=collator)
    case "packed":
        # region trainer_packed
        from transformers import DataCollatorWithFlattening

        args = TrainingArguments(
            output_dir="output",
            per_device_train_batch_size=8,
        )
        trainer = Trainer(
            model,
            args,
            train_dataset=dataset,
            data_collator=DataCollatorWithFlattening(),
        )
        # endregion
    case "max_length":
        from transformers import DataCollatorForLanguageModeling

        collator = DataCollatorForLanguageModeling(tokenizer, mlm=False)
        args = TrainingArguments("output", per_device_train_batch_size=8)
        trainer = Trainer(model, args, train_dataset=dataset, data_collator=collator)

batches = [dict(batch) for batch in trainer.get_train_dataloader()]


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
    each = cross_entropy(
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

# %% pytorch
if method == "longest":
    # region pytorch_longest
    from torch.utils.data import DataLoader
    from transformers import DataCollatorForLanguageModeling

    # Pads to the longest of the batch.
    collator = DataCollatorForLanguageModeling(
        tokenizer,
        mlm=False,
    )
    loader = DataLoader(
        dataset,
        batch_size=8,
        shuffle=True,
        collate_fn=collator,
    )
    # endregion
    batches += list(loader)
if method == "packed":
    rows = [torch.tensor(row, device=device) for row in rows[:batch_size]]
    # region pytorch_packed
    from torch.nn.functional import pad

    def pack(rows):
        """All sequences in one row, without padding."""
        # No sequence predicts the first token of another.
        labels = [pad(r[1:], (1, 0), value=-100) for r in rows]
        # Positions that begin anew keep sequences apart.
        order = [torch.arange(len(r)).to(r) for r in rows]
        return {
            "input_ids": torch.cat(rows)[None],
            "labels": torch.cat(labels)[None],
            "position_ids": torch.cat(order)[None],
        }

    # With a cache, sequences would see each other.
    loss = model(**pack(rows), use_cache=False).loss
    # endregion

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
times = 2 if method == "longest" else 1  # by `Trainer`, and by hand
assert sum(kept) == times * sum(lengths) and len(wanted) > 0
assert loss_difference < 1e-4, loss_difference
if method == "longest":
    assert len(batches) == 2 * len(trainer.get_train_dataloader())
sizes = {len(batch["input_ids"]) for batch in batches}
assert trainer.args.per_device_train_batch_size == batch_size
assert sizes == ({1} if method == "packed" else {batch_size})
grouped = trainer.args.train_sampling_strategy == "group_by_length"
assert grouped == (method == "grouped")
if method == "packed":
    assert wasted_share == 0
    # With a cache, packed sequences see each other, and no error says so.
    assert cached_loss_difference > 100 * loss_difference, cached_loss_difference
    # By hand, it is the batch of the collator.
    by_hand, collated = pack(rows), trainer.data_collator(dataset[:batch_size])
    assert by_hand.keys() == collated.keys()
    assert all(torch.equal(by_hand[name].cpu(), collated[name]) for name in by_hand)
    alone_each = alone({name: each.to(device) for name, each in collated.items()})
    assert math.isclose(loss.item(), alone_each.mean().item(), rel_tol=1e-4)
else:
    longest_of = [batch["attention_mask"].sum(1).max().item() for batch in batches]
    padded_to = [batch["input_ids"].shape[1] for batch in batches]
    assert padded_to == (
        [longest] * len(batches) if method == "max_length" else longest_of
    )
