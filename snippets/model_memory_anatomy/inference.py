"""BERT-large at inference beside its forward pass in training: what each needs, and what stays."""
# /// script
# requires-python = ">=3.11"
# dependencies = ["torch>=2.11", "transformers>=5.23", "numpy>=2.0"]
#
# [tool.benchbook]
# # Weights and what is kept are the same on every device.
# needs = ["cpu"]
# worth = 4
# timeout = 300
# meters = ["cpu_allocator"]
# environment = { MALLOC_MMAP_MAX_ = "0", MALLOC_TRIM_THRESHOLD_ = "100000000000" }
# [tool.benchbook.metrics]
# weights = { unit = "B", better = "lower", memory = "device" }
# bytes_per_parameter = { unit = "B/parameter", better = "lower" }
# weights_copied = { unit = "B", better = "lower", memory = "device" }
# kept = { unit = "B", better = "lower", memory = "device" }
# bf16_difference = { unit = "1", better = "lower" }
# [tool.benchbook.matrix]
# mode = ["training", "inference", "inference_bf16", "inference_autocast"]
# [tool.benchbook.smallest]
# layers = 2
# batch_size = 1
# sequence_length = 128
# [tool.benchbook.work]
# host_values = "32.8e6 + 12.6e6 * layers"
# fp32 = '''
# 2 * layers * 13.6e6 * (256 + (batch_size * sequence_length if mode in ('training', 'inference') else 0))
# '''
# bf16 = '''
# 0 if mode in ('training', 'inference') else 2 * layers * 13.6e6 * batch_size * sequence_length
# '''
# seconds = 0.5
# ///

# %% parameters
mode = "inference"
batch_size = 4
sequence_length = 512
layers = 24

# %% model
import weakref

import torch
from torch.utils._python_dispatch import TorchDispatchMode
from transformers import BertConfig, BertForSequenceClassification

device = torch.accelerator.current_accelerator(check_available=True) or torch.device(
    "cpu"
)
torch.manual_seed(42)
config = BertConfig(
    vocab_size=30522,
    hidden_size=1024,
    num_hidden_layers=layers,
    num_attention_heads=16,
    intermediate_size=4096,
    max_position_embeddings=512,
)
model = BertForSequenceClassification(config).to(device)
shape = (batch_size, sequence_length)
tokens = torch.randint(0, config.vocab_size, shape).to(device)
print(f"device: {device.type}, {mode}, {batch_size} x {sequence_length}")

# %% fp32_reference
with torch.inference_mode():
    wanted = model.eval()(tokens[:1, :128]).logits  # small, to compare bf16 with

# %% prepare
model.train(mode == "training")
if mode == "inference_bf16":
    model.to(torch.bfloat16)

weights = sum(weight.nbytes for weight in model.parameters())
parameters = sum(weight.numel() for weight in model.parameters())
weight_storages = {w.untyped_storage().data_ptr() for w in model.parameters()}
print(f"weights: {weights / 2**20:.1f} MiB")

# %% count
saved = {}  # a storage saved twice is held once


def count(tensor):
    storage = tensor.untyped_storage()
    saved[storage.data_ptr()] = storage.nbytes()
    return tensor


class Copies(TorchDispatchMode):
    """Sees every copy of a weight in another type, without keeping it alive."""

    def __init__(self):
        super().__init__()
        self.made = []

    def __torch_dispatch__(self, operator, types, args=(), kwargs=None):
        result = operator(*args, **(kwargs or {}))
        copies = operator is torch.ops.aten._to_copy.default
        if copies and args[0].untyped_storage().data_ptr() in weight_storages:
            self.made.append(weakref.ref(result))
        return result

    def held(self):
        """Bytes of those that something still keeps."""
        alive = [copy() for copy in self.made]
        return sum(copy.nbytes for copy in alive if copy is not None)


# %% serve
@torch.inference_mode()
def serve(tokens):
    model.eval()
    return model(tokens).logits


# %% serve_autocast
# Under inference_mode(), each layer would copy its weights anew.
@torch.no_grad()
def serve_autocast(tokens):
    model.eval()
    with torch.autocast(device.type, torch.bfloat16):
        return model(tokens).logits


# %% forward
ways = {"inference": serve, "inference_bf16": serve}
ways |= {"inference_autocast": serve_autocast}
forward = ways.get(mode, lambda tokens: model(tokens).logits)
hooks = torch.autograd.graph.saved_tensors_hooks(count, lambda tensor: tensor)
# Within another block, autocast keeps its copies to the end of that one.
outer = torch.autocast(device.type, enabled=False)
with hooks, Copies() as copies, outer:
    logits = forward(tokens)
    weights_copied = copies.held()

# %% kept
bytes_per_parameter = (weights + weights_copied) / parameters
print(f"copies of weights: {weights_copied / 2**20:.1f} MiB")
kept = sum(size for place, size in saved.items() if place not in weight_storages)
print(f"kept for a backward pass: {kept / 2**20:.1f} MiB")

# %% compare
model.eval()
small = forward(tokens[:1, :128]).detach().float()
bf16_difference = ((small - wanted).norm() / wanted.norm()).item()
print(f"logits differ from fp32 by {bf16_difference:.1e}")

# %% checks
expected = torch.accelerator.current_accelerator(check_available=True) or torch.device(
    "cpu"
)
assert logits.device.type == expected.type, "this ran on the CPU beside an accelerator"
assert logits.shape == (batch_size, 2) and logits.isfinite().all()
assert layers != 24 or parameters == 335_143_938
weight_types = {weight.dtype for weight in model.parameters()}
pure = torch.bfloat16 if mode == "inference_bf16" else torch.float32
assert weight_types == {pure}
assert logits.dtype == (torch.bfloat16 if mode == "inference_autocast" else pure)
assert copies.held() == 0, "autocast kept copies beyond its block"
if mode == "training":
    assert logits.requires_grad and kept > 60 * layers * 1024 * tokens.numel()
else:
    assert not logits.requires_grad and kept == 0
if mode == "inference_bf16":
    assert bytes_per_parameter == 2 and 1e-5 < bf16_difference < 0.1
elif mode == "inference_autocast":
    assert 4 < bytes_per_parameter < 6 and 1e-5 < bf16_difference < 0.1
else:
    assert bytes_per_parameter == 4 and bf16_difference < 1e-5
