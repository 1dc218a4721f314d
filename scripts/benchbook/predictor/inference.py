"""The generation loop whose memory is predicted; it runs on a real device as it runs on a fake one."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import torch
from torch import nn
from transformers import DynamicCache, EncoderDecoderCache, StaticCache

from benchbook.predictor.autocast import autocast
from benchbook.predictor.workload import Inference

# Is told the name of each moment as it begins.
Mark = Callable[[str], None]
# Of a long generation on a fake device, the first and the last tokens are enough: it grows steadily.
FIRST = 2
LAST = 2


@torch.no_grad()
def generate(
    model: nn.Module,
    workload: Inference,
    device: str,
    mark: Mark,
    seen: Callable[[Any], None],
    skipping: bool,
) -> None:
    """Read the prompts, then generate greedily.

    Parameters:
        model: With a language model's head, on the device, in evaluation mode.
        workload: How to generate.
        device: Its type.
        mark: Is told the name of each moment as it begins.
        seen: Is given the cache after each forward pass.
        skipping: Leave most of the new tokens out; a cache that grows gets theirs at once.
    """
    config: Any = model.config
    mark("prefill")
    ids = torch.zeros(workload.batch, workload.prompt, dtype=torch.long, device=device)
    cache = _new_cache(config, workload)
    given: dict[str, Any] = {"past_key_values": cache, "use_cache": True}
    if config.is_encoder_decoder:
        with autocast(device, workload.precision):
            given["encoder_outputs"] = model.get_encoder()(input_ids=ids)  # type: ignore[operator]
        ids = torch.zeros(workload.batch, 1, dtype=torch.long, device=device)
    token = ids
    left = workload.new_tokens
    while left > 0:
        with autocast(device, workload.precision):
            output = _forward(model, token, given)
        seen(cache)
        # As transformers' `generate`: scores in fp32, and all tokens so far in one tensor.
        scores = output.logits[:, -1].to(torch.float32, copy=True)
        token = scores.argmax(dim=-1, keepdim=True)
        ids = torch.cat([ids, token], dim=-1)
        del output, scores
        left -= 1
        mark("decode")
        if skipping and left > LAST and workload.new_tokens - left > FIRST:
            if workload.cache == "dynamic":
                _append(cache, left - LAST)
                seen(cache)
            left = LAST


def _forward(model: nn.Module, token: torch.Tensor, given: dict[str, Any]) -> Any:
    if "encoder_outputs" in given:
        return model(decoder_input_ids=token, **given)
    return model(input_ids=token, logits_to_keep=1, **given)


def _new_cache(config: Any, workload: Inference) -> Any:
    decoded = workload.new_tokens + (1 if config.is_encoder_decoder else workload.prompt)

    def one(length: int) -> Any:
        if workload.cache == "static":
            return StaticCache(config=config, max_cache_len=length)
        return DynamicCache(config=config)

    if config.is_encoder_decoder:
        return EncoderDecoderCache(one(decoded), one(workload.prompt))
    return one(decoded)


def cache_tensors(cache: Any) -> Iterator[tuple[int, torch.Tensor]]:
    """The keys and values that a cache holds, with the number of their layer."""
    parts = (cache.self_attention_cache, cache.cross_attention_cache) if _is_double(cache) else (cache,)
    for part in parts:
        for number, layer in enumerate(part.layers):
            for tensor in (getattr(layer, "keys", None), getattr(layer, "values", None)):
                if isinstance(tensor, torch.Tensor):
                    yield number, tensor


def _append(cache: Any, tokens: int) -> None:
    grown = cache.self_attention_cache if _is_double(cache) else cache
    for layer in grown.layers:
        if isinstance(getattr(layer, "keys", None), torch.Tensor):
            # All in the memory of one: a generation asks for no more at once.
            layer.update(*(_one(held).expand(-1, -1, tokens, -1) for held in (layer.keys, layer.values)))


def _one(held: torch.Tensor) -> torch.Tensor:
    batch, heads, _, head = held.shape
    return held.new_zeros(batch, heads, 1, head)


def _is_double(cache: Any) -> bool:
    return isinstance(cache, EncoderDecoderCache)
