"""Layers in four bits hold as many bytes as those of bitsandbytes, and compute as they do."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import nn

from benchbook.predictor.four_bit import FourBitLinear
from benchbook.predictor.prediction import fake_device, predict
from benchbook.predictor.workload import Lora, Training

pytestmark = pytest.mark.torch

LLAMA = {
    "model_type": "llama",
    "architectures": ["LlamaForCausalLM"],
    "hidden_size": 512,
    "intermediate_size": 1536,
    "num_hidden_layers": 4,
    "num_attention_heads": 8,
    "num_key_value_heads": 2,
    "vocab_size": 1024,
}


def quantized(inputs: int, outputs: int, bias: bool) -> Any:
    """A layer of bitsandbytes, as transformers makes it for QLoRA."""
    bitsandbytes = pytest.importorskip("bitsandbytes")
    layer = bitsandbytes.nn.Linear4bit(
        inputs,
        outputs,
        bias=bias,
        compute_dtype=torch.bfloat16,
        compress_statistics=True,
        quant_type="nf4",
    )
    layer.weight.data = layer.weight.data.to(torch.bfloat16)
    return layer.to("cpu")


@pytest.mark.parametrize(
    ("inputs", "outputs", "bias"), [(512, 1536, False), (64, 96, True), (1000, 30, False)]
)
def test_a_layer_holds_the_bytes_of_bitsandbytes(inputs: int, outputs: int, bias: bool) -> None:
    real = quantized(inputs, outputs, bias)
    state = real.weight.quant_state
    scales = (state.absmax, state.code, state.offset, state.state2.absmax, state.state2.code)
    held = real.weight.nbytes + sum(tensor.nbytes for tensor in scales)
    ours = FourBitLinear(nn.Linear(inputs, outputs, bias=False), inputs, outputs)
    tensors = [*ours.parameters(), *ours.buffers()]
    assert sum(tensor.nbytes for tensor in tensors) == held
    assert real.weight.shape == ours.weight.shape
    assert state.dtype == ours.dtype


def test_a_frozen_layer_passes_the_gradient_on() -> None:
    with fake_device("cpu"):
        layer = FourBitLinear(nn.Linear(8, 4), 8, 4)
        hidden = torch.randn(3, 8, requires_grad=True)
        layer(hidden).sum().backward()
        assert hidden.grad is not None
        assert hidden.grad.shape == hidden.shape
        assert layer.weight.grad is None


def test_four_bits_leave_a_quarter_of_the_weights_of_sixteen() -> None:
    def weights(four_bit: bool) -> int:
        lora = Lora(8, four_bit=four_bit)
        found = predict(LLAMA, Training(1, 64, "bf16_weights_autocast", lora=lora))
        return found.categories["weights"]

    linear = 4 * (512 * (512 + 2 * 128 + 512) + 3 * 512 * 1536)
    # Two bytes, or half a byte and a 64th, a 64th of a 256th of four bytes, and tables.
    saved = linear * (2 - 1 / 2 - 1 / 64 - 4 / 64 / 256)
    assert weights(False) - weights(True) == pytest.approx(saved, rel=0.01)
