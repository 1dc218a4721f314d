"""The seven trainings of BERT-large whose memory was published in 2022, as software ran them then or runs them today."""
# /// script
# requires-python = ">=3.11"
# dependencies = ["torch>=2.11", "transformers>=5.23"]
#
# [tool.benchbook]
# needs = ["accelerator", "cpu"]
# timeout = 300
# meters = ["cpu_allocator"]
# environment = { MALLOC_MMAP_MAX_ = "0", MALLOC_TRIM_THRESHOLD_ = "100000000000" }
# [tool.benchbook.metrics]
# parameter_count = { unit = "count" }
# [tool.benchbook.matrix]
# software = ["of_2022", "of_today"]
# run = ["batch_4", "accumulation", "checkpointing", "fp16", "fp16_checkpointing", "adafactor", "all_of_it"]
# # What a CPU shows of it, with a few layers: that each setting does what it says.
# [tool.benchbook.on.cpu]
# layers = 2
# sequence_length = 32
# [tool.benchbook.smallest]
# layers = 1
# sequence_length = 8
# [tool.benchbook.work]
# fp32 = "layers * 4 * sequence_length * 13e6 * 12"
# seconds = 0.5
# ///

# %% parameters
software = "of_2022"
run = "batch_4"
layers = 24
sequence_length = 512

# %% first_tensor
import torch

device = torch.accelerator.current_accelerator(check_available=True) or torch.device(
    "cpu"
)
first_tensor = torch.ones(1, 1, device=device)

# %% settings
batch_size = 4 if run in ("batch_4", "fp16", "adafactor") else 1
accumulation = 4 // batch_size
fp16 = run in ("fp16", "fp16_checkpointing", "all_of_it")
checkpointing = run in ("checkpointing", "fp16_checkpointing", "all_of_it")
adafactor = run in ("adafactor", "all_of_it")
then = software == "of_2022"  # but for its softmax, which kept its input as well

# %% model
from transformers import AutoModelForSequenceClassification, BertConfig
from transformers.optimization import Adafactor

torch.manual_seed(0)
config = BertConfig(
    hidden_size=1024,
    num_hidden_layers=layers,
    num_attention_heads=16,
    intermediate_size=4096,
)
attention = "eager" if then else "sdpa"
model = AutoModelForSequenceClassification.from_config(
    config, attn_implementation=attention
)
model.to(device).train()
if checkpointing:
    model.activation_checkpointing_enable()
parameter_count = model.num_parameters()

# %% optimizer
if adafactor:
    optimizer = Adafactor(
        model.parameters(), lr=1e-5, scale_parameter=False, relative_step=False
    )
else:
    kind = {"foreach": False} if then else {"fused": True}
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-5, **kind)

# %% data
shape = (batch_size, sequence_length)
tokens = torch.randint(0, config.vocab_size, shape, device=device)
batch = {"input_ids": tokens, "labels": tokens[:, 0] % 2}

# %% train
autocast = torch.autocast(device.type, torch.float16, enabled=fp16)
scaler = torch.amp.GradScaler(device.type, init_scale=1024.0, enabled=fp16)
losses = []
for _ in range(2):
    for _ in range(accumulation):
        with autocast:
            loss = model(**batch).loss / accumulation
        scaler.scale(loss).backward()
    losses.append(loss.item())
    scaler.unscale_(optimizer)
    torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    scaler.step(optimizer)
    scaler.update()
    optimizer.zero_grad(set_to_none=not then)
print(f"{run}, {software}: loss {losses[0]:.3f} -> {losses[1]:.3f}")

# %% checks
import math

expected = torch.accelerator.current_accelerator(check_available=True) or torch.device(
    "cpu"
)
weights = list(model.parameters())
assert {weight.device.type for weight in weights} == {expected.type}
assert layers != 24 or parameter_count == 335_143_938
assert batch_size * accumulation == 4
assert len(losses) == 2 and all(math.isfinite(loss) for loss in losses)
assert scaler.get_scale() == (1024.0 if fp16 else 1.0), "a step was skipped"
assert model.config._attn_implementation == attention
assert model.is_activation_checkpointing == checkpointing
assert ("exp_avg" in optimizer.state[weights[0]]) != adafactor
gradients = {weight.grad is None for weight in weights}
assert gradients == {not then}, "gradients stay, as zeros, where they did in 2022"
