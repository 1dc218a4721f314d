"""What PyTorch's own int8 says of a model whose weights were loaded in bf16, and that the same one in fp32 is taken."""
# /// script
# requires-python = ">=3.11"
# dependencies = ["torch>=2.11", "transformers>=5.23", "accelerate>=1.15"]
#
# [tool.benchbook]
# needs = ["cpu"]
# timeout = 60
# [tool.benchbook.metrics]
# tokens_scored = { unit = "count" }
# ///

# %% setup
import warnings

import torch
from transformers import LlamaConfig, LlamaForCausalLM

torch.manual_seed(0)
torch.set_grad_enabled(False)
# Announced to go with PyTorch 2.10, and still the int8 that needs no other package.
warnings.filterwarnings(
    "ignore", "torch.ao.quantization is deprecated", DeprecationWarning
)
warnings.filterwarnings("ignore", "torch.quantize_per_tensor", UserWarning)
config = LlamaConfig(
    hidden_size=64,
    intermediate_size=128,
    num_hidden_layers=1,
    num_attention_heads=4,
    vocab_size=100,
)
model = LlamaForCausalLM(config).eval().to(torch.bfloat16)
prompt = torch.randint(100, (1, 16))

# %% refused
smaller = torch.ao.quantization.quantize_dynamic(
    model, {torch.nn.Linear}, dtype=torch.qint8
)
try:
    smaller(prompt)
except RuntimeError as error:
    told = str(error)
    print(f"{type(error).__name__}: {told}")
else:
    raise AssertionError("a model in bf16 is taken")

# %% taken
whole = torch.ao.quantization.quantize_dynamic(
    model.float(), {torch.nn.Linear}, dtype=torch.qint8
)
tokens_scored = whole(prompt).logits.shape[1]

# %% checks
assert told == "expected scalar type Float but found BFloat16"
assert tokens_scored == prompt.shape[1]
