"""What gradient accumulation does to throughput and memory, against two baselines."""
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
# batch_size = { unit = "samples" }
# samples_per_second = { unit = "samples/s", better = "higher" }
# optimizer_seconds = { unit = "s", better = "lower" }
# optimizer_share = { unit = "1", better = "lower" }
# peak_memory = { unit = "B", better = "lower", memory = "device" }
# gradient_difference = { unit = "1", better = "lower" }
# token_normalised_difference = { unit = "1", better = "lower" }
# trainer_difference = { unit = "1", better = "lower" }
# mean_of_means_difference = { unit = "1", better = "lower" }
# [[tool.benchbook.matrix]]
# micro_batch_size = 16
# accumulation_steps = 1
# [[tool.benchbook.matrix]]
# micro_batch_size = 4
# accumulation_steps = 4
# [[tool.benchbook.matrix]]
# micro_batch_size = 1
# accumulation_steps = 16
# [[tool.benchbook.matrix]]
# micro_batch_size = 4
# accumulation_steps = 1
# [[tool.benchbook.matrix]]
# micro_batch_size = 4
# accumulation_steps = 16
# [tool.benchbook.on.accelerator]
# repeats = 3
# hidden_size = 1024
# layers = 6
# heads = 16
# intermediate_size = 4096
# sequence_length = 256
# timed_samples = 64
# [tool.benchbook.smallest]
# layers = 1
# sequence_length = 16
# timed_samples = 1
# [tool.benchbook.work]
# fp32 = '''
# (6 * sequence_length
#  * layers * (4 * hidden_size**2 + 2 * hidden_size * intermediate_size + 2 * hidden_size * sequence_length)
#  * (max(timed_samples, micro_batch_size * accumulation_steps)
#     + micro_batch_size + micro_batch_size * accumulation_steps))
# '''
# seconds = 0.9
# ///

# %% parameters
micro_batch_size = 16
accumulation_steps = 1
sequence_length = 128
hidden_size = 384
layers = 4
heads = 12
intermediate_size = 1536
vocab_size = 30522
timed_samples = 32  # at least one optimizer step of them
seed = 42

# %% setup
import time
from functools import partial
from itertools import accumulate

import torch
import transformers
from torch.profiler import ProfilerActivity, profile
from transformers import BertConfig, BertForSequenceClassification
from transformers import LlamaConfig, LlamaForCausalLM, PrinterCallback
from transformers import Trainer, set_seed

device = torch.accelerator.current_accelerator(check_available=True) or torch.device(
    "cpu"
)
batch_size = micro_batch_size * accumulation_steps
TrainingArguments = partial(
    transformers.TrainingArguments,
    max_steps=1,
    optim="sgd",
    learning_rate=1.0,
    max_grad_norm=0.0,
    train_sampling_strategy="sequential",
    save_strategy="no",
    disable_tqdm=True,
    dataloader_pin_memory=False,
)

# %% uneven
set_seed(seed)
tiny = LlamaConfig(
    vocab_size=256,
    hidden_size=64,
    intermediate_size=256,
    num_hidden_layers=2,
    num_attention_heads=4,
)
with device:
    model = LlamaForCausalLM(tiny)
    tokens = torch.randint(0, 256, (batch_size, 32))
    answers = torch.arange(batch_size) % 7 + 2  # tokens that count
    position = torch.arange(32)
weights = {name: weight.clone() for name, weight in model.state_dict().items()}
optimizer = torch.optim.SGD(model.parameters(), lr=1.0)  # moves by the gradient
answered = torch.where(position >= 32 - answers[:, None], tokens, -100)
batches = [
    {"input_ids": ids, "labels": labels}
    for ids, labels in zip(
        tokens.split(micro_batch_size), answered.split(micro_batch_size)
    )
]

# %% token_normalised
if (micro_batch_size, accumulation_steps) == (4, 4):
    # region pytorch
    from itertools import islice

    loader = iter(batches)
    while group := list(islice(loader, 4)):
        # The model shifts: no token predicts the first label
        labels = [batch["labels"][:, 1:] for batch in group]
        count = sum((part != -100).sum() for part in labels)
        for batch in group:
            # Divides the sum of the losses by the count
            loss = model(**batch, num_items_in_batch=count).loss
            loss.backward()
        optimizer.step()
        optimizer.zero_grad()
    # endregion
else:
    count = sum((batch["labels"][:, 1:] != -100).sum() for batch in batches)
    for batch in batches:
        loss = model(**batch, num_items_in_batch=count).loss
        loss.backward()
    optimizer.step()
    optimizer.zero_grad()

# %% with_trainer
if (micro_batch_size, accumulation_steps) == (4, 4):
    # region trainer
    args = TrainingArguments(
        output_dir="output",
        per_device_train_batch_size=4,
        gradient_accumulation_steps=4,
    )
    # endregion
else:
    args = TrainingArguments(
        output_dir="output",
        per_device_train_batch_size=micro_batch_size,
        gradient_accumulation_steps=accumulation_steps,
    )


# %% same_step
def moved():
    """How far the step has moved each weight, as one vector."""
    now = model.state_dict()
    return torch.cat([(now[name] - weights[name]).flatten() for name in weights])


def difference(change, wanted):
    return ((change - wanted).norm() / wanted.norm()).item()


token_normalised = moved()
model.load_state_dict(weights)
model(input_ids=tokens, labels=answered).loss.backward()  # one big batch
optimizer.step()
optimizer.zero_grad()
wanted = moved()
token_normalised_difference = difference(token_normalised, wanted)
model.load_state_dict(weights)
for batch in batches:  # the mean of the means, as it is often written
    (model(**batch).loss / accumulation_steps).backward()
optimizer.step()
optimizer.zero_grad()
mean_of_means_difference = difference(moved(), wanted)
model.load_state_dict(weights)
rows = zip(tokens.cpu(), answered.cpu())
dataset = [{"input_ids": ids, "labels": labels} for ids, labels in rows]
trainer = Trainer(model, args, train_dataset=dataset)
trainer.remove_callback(PrinterCallback)
trainer.train()
trainer_steps = trainer.state.global_step
trainer_difference = difference(moved(), wanted)
print(f"the step differs by {token_normalised_difference:.1e} from the big batch")
print(f"that of Trainer differs by {trainer_difference:.1e}")
print(f"that of the mean of the means differs by {mean_of_means_difference:.1e}")
del trainer, optimizer, model, loss

# %% model
config = BertConfig(
    vocab_size=vocab_size,
    hidden_size=hidden_size,
    num_hidden_layers=layers,
    num_attention_heads=heads,
    intermediate_size=intermediate_size,
)
with device:
    model = BertForSequenceClassification(config).train()
    ids = torch.randint(0, vocab_size, (batch_size, sequence_length))
    labels = torch.arange(batch_size) % 2
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-5, fused=True)


# %% step
def backward(ids, labels):
    for part, answer in zip(
        ids.split(micro_batch_size), labels.split(micro_batch_size)
    ):
        loss = model(part, labels=answer).loss / accumulation_steps
        loss.backward()
    return loss.item()  # waits for the device


def update():
    begin = time.perf_counter()
    optimizer.step()
    optimizer.zero_grad()
    if device.type != "cpu":
        torch.accelerator.synchronize()
    return time.perf_counter() - begin


# %% time
backward(ids[:micro_batch_size], labels[:micro_batch_size])
update()  # makes the optimizer states
timed_steps = max(1, timed_samples // batch_size)
optimizer_times = []
begin = time.perf_counter()
for _ in range(timed_steps):
    last_loss = backward(ids, labels)
    optimizer_times.append(update())
elapsed = time.perf_counter() - begin
samples_per_second = timed_steps * batch_size / elapsed
optimizer_seconds = sum(optimizer_times) / timed_steps
optimizer_share = sum(optimizer_times) / elapsed
print(f"{accumulation_steps} x {micro_batch_size}: {samples_per_second:.1f} samples/s")
print(f"optimizer: {optimizer_share:.1%} of the time")

# %% peak
if device.type == "cpu":
    states = [state for each in optimizer.state.values() for state in each.values()]
    held = sum(tensor.nbytes for tensor in [*model.parameters(), *states, ids, labels])
    with profile(activities=[ProfilerActivity.CPU], profile_memory=True) as profiled:
        backward(ids, labels)
        update()
    events = profiled.profiler.kineto_results.events()
    changes = [event for event in events if event.name() == "[memory]"]
    changes.sort(key=lambda event: event.start_ns())
    peak_memory = held + max(accumulate(event.nbytes() for event in changes))
else:
    torch.accelerator.reset_peak_memory_stats()
    backward(ids, labels)
    update()
    peak_memory = torch.accelerator.max_memory_allocated()
print(f"peak: {peak_memory / 2**20:.0f} MiB")

# %% same_gradient
model.eval()  # or each micro-batch would drop something else
short = ids[:, :16]
backward(short, labels)
accumulated = torch.cat([weight.grad.flatten() for weight in model.parameters()])
optimizer.zero_grad()
model(short, labels=labels).loss.backward()
whole = torch.cat([weight.grad.flatten() for weight in model.parameters()])
gradient_difference = difference(accumulated, whole)
print(f"the gradient differs by {gradient_difference:.1e} from that of one batch")

# %% checks
import math

assert model.device.type == args.device.type == device.type
assert args.per_device_train_batch_size == micro_batch_size
assert args.gradient_accumulation_steps == accumulation_steps == len(batches)
assert trainer_steps == 1
assert math.isfinite(last_loss) and len(optimizer_times) == timed_steps
assert 0 < optimizer_share < 1
assert wanted.norm() > 0.01  # the step that is compared went somewhere
assert token_normalised_difference < 1e-4
assert trainer_difference < 1e-4
# A mean of means is another step as soon as the micro-batches are not equal.
assert (mean_of_means_difference > 0.01) == (accumulation_steps > 1)
assert gradient_difference < 1e-4
kept = 4 * micro_batch_size * sequence_length * hidden_size * layers
gradients = 4 * model.num_parameters() if accumulation_steps > 1 else 0
assert peak_memory > 12 * model.num_parameters() + gradients + kept
