"""What the device holds, step by step, in one plain training run of BERT-large with Trainer."""
# /// script
# requires-python = ">=3.11"
# dependencies = ["torch>=2.11", "transformers>=5.23", "accelerate>=1.15"]
#
# [tool.benchbook]
# needs = ["accelerator", "cpu"]
# worth = 6
# timeout = 900
# repeats = 3
# meters = ["cpu_allocator"]
# # Released memory returns to the system at once: the process holds what the tensors do.
# environment = { MALLOC_MMAP_THRESHOLD_ = "131072", MALLOC_TRIM_THRESHOLD_ = "131072" }
# [tool.benchbook.metrics]
# parameter_count = { unit = "count" }
# weight_bytes = { unit = "B", memory = "device" }
# [tool.benchbook.on.accelerator]
# repeats = 2
# steps = 4
# # As published.
# [tool.benchbook.on.nvidia-v100-16gb--published]
# steps = 128
# [tool.benchbook.on.cpu]
# steps = 2
# [tool.benchbook.smallest]
# layers = 2
# batch_size = 1
# sequence_length = 32
# steps = 2
# [tool.benchbook.work]
# host_values = "32.8e6 + 12.6e6 * layers"
# fp32 = '''
# 6 * batch_size * sequence_length * layers * (12.6e6 + 2048 * sequence_length) * steps
# '''
# seconds = 2
# ///

# %% parameters
layers = 24
batch_size = 4
sequence_length = 512
steps = 128

# %% first_tensor
import torch
from transformers import BertConfig, BertForSequenceClassification
from transformers import PrinterCallback, Trainer, TrainingArguments

device = torch.accelerator.current_accelerator(check_available=True) or torch.device(
    "cpu"
)
first_tensor = torch.ones(1, 1, device=device)

# %% load_model
torch.manual_seed(0)
config = BertConfig(  # BERT-large, with random weights
    hidden_size=1024,
    num_hidden_layers=layers,
    num_attention_heads=16,
    intermediate_size=4096,
)
model = BertForSequenceClassification(config).to(device)

weights = list(model.parameters())
parameter_count = sum(weight.numel() for weight in weights)
weight_bytes = sum(weight.nbytes for weight in weights)
print(f"{parameter_count:,} parameters, {weight_bytes / 2**20:,.1f} MiB")

# %% train
samples = steps * batch_size
token_ids = torch.randint(0, config.vocab_size, (samples, sequence_length))
dataset = [
    {"input_ids": ids, "labels": index % 2} for index, ids in enumerate(token_ids)
]
args = TrainingArguments(
    output_dir="output",
    per_device_train_batch_size=batch_size,
    max_steps=steps,
    save_strategy="no",
    disable_tqdm=True,
    dataloader_pin_memory=device.type != "cpu",
)
trainer = Trainer(model=model, args=args, train_dataset=dataset)
trainer.remove_callback(PrinterCallback)  # times would be those under the meters
result = trainer.train()

# %% checks
import math

moments = [
    trainer.optimizer.state[weight][name]
    for weight in weights
    for name in ("exp_avg", "exp_avg_sq")
]
assert parameter_count == 32_834_562 + layers * 12_596_224  # as computed by hand
assert weight_bytes == 4 * parameter_count
assert sum(moment.nbytes for moment in moments) == 8 * parameter_count
assert {tensor.device.type for tensor in weights + moments} == {device.type}
assert trainer.args.device.type == device.type
assert trainer.state.global_step == steps
assert math.isfinite(result.training_loss)
assert all(moment.abs().max() > 0 for moment in moments), "a weight got no gradient"
