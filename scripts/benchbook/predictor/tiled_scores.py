"""How probable tokens are, from logits that are never there at once: a tile of them after the other.

As TRL 1.16.0 has it (`ChunkedLogProbFunction` of `trl/kernels/chunked_logprob.py`), whose kernel turns each
tile into a few numbers per token, and makes it anew for the gradients.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import torch
from torch._subclasses.fake_tensor import is_fake

from benchbook.predictor.chunked_loss import add_product, computed_in

# Columns of a tile (trl `_CHUNKED_LOGPROB_CHUNK_SIZE`); its buffer is as wide for any vocabulary.
COLUMNS = 32768


def tiled_scores(states: torch.Tensor, weight: torch.Tensor, tokens: torch.Tensor, rows: int) -> torch.Tensor:
    """The logarithm of each token's probability, of shape [tokens], in fp32.

    Parameters:
        states: In front of the output head, of shape [tokens, hidden].
        weight: Of the head, of shape [vocabulary, hidden].
        tokens: Which follow, of shape [tokens].
        rows: Tokens of a tile.
    """
    apply: Callable[..., torch.Tensor] = _TiledScores.apply
    return apply(states, weight, tokens, rows)


class _TiledScores(torch.autograd.Function):
    """Keeps states, weights and the sum of each token's exponentials, and computes the tiles twice."""

    @staticmethod
    def forward(
        ctx: Any, states: torch.Tensor, weight: torch.Tensor, tokens: torch.Tensor, rows: int
    ) -> torch.Tensor:
        dtype = computed_in(states)
        count = len(states)
        highest = states.new_full((count,), -torch.inf, dtype=torch.float32)
        total = torch.zeros_like(highest)
        right = torch.zeros_like(highest)
        buffer = states.new_empty((min(count, rows), COLUMNS), dtype=dtype)
        for span, columns in _tiles(states, weight, rows):
            tile = _logits(buffer, states[span].to(dtype), weight[columns].to(dtype))
            places, inside = _places(tokens[span], columns, tile.shape[1])
            found = tile.gather(-1, places)[:, 0].float()
            right[span] = torch.where(inside, found, right[span])
            new = torch.maximum(highest[span], tile.amax(dim=-1).float())
            summed = tile.sub_(new[:, None].to(dtype)).exp_().sum(dim=-1)
            total[span] = total[span] * torch.exp(highest[span] - new) + summed.float()
            highest[span] = new
        logarithm = highest + total.log()
        ctx.save_for_backward(states, weight, tokens, logarithm)
        ctx.rows, ctx.dtype = rows, dtype
        return right - logarithm

    @staticmethod
    def backward(ctx: Any, *gradients: torch.Tensor) -> tuple[torch.Tensor | None, ...]:
        states, weight, tokens, logarithm = ctx.saved_tensors
        # Added up in fp32, whatever the inputs are.
        states_grad = torch.zeros_like(states, dtype=torch.float32)
        weight_grad = torch.zeros_like(weight, dtype=torch.float32) if ctx.needs_input_grad[1] else None
        buffer = states.new_empty((min(len(states), ctx.rows), COLUMNS), dtype=ctx.dtype)
        for span, columns in _tiles(states, weight, ctx.rows):
            some, part = states[span].to(ctx.dtype), weight[columns].to(ctx.dtype)
            tile = _logits(buffer, some, part)
            places, inside = _places(tokens[span], columns, tile.shape[1])
            given = gradients[0][span][:, None].to(ctx.dtype)
            tile.sub_(logarithm[span][:, None].to(ctx.dtype)).exp_().mul_(-given)
            # In 16 bits, `scatter_add_` of a CPU would copy the whole tile.
            tile[torch.arange(len(tile), device=tile.device), places[:, 0]] += given[:, 0] * inside
            add_product(states_grad[span], tile.t(), part)
            if weight_grad is not None:
                add_product(weight_grad[columns], tile, some)
        of_weight = None if weight_grad is None else weight_grad.to(weight.dtype)
        return states_grad.to(states.dtype), of_weight, None, None


def _tiles(states: torch.Tensor, weight: torch.Tensor, rows: int) -> Iterator[tuple[slice, slice]]:
    """The tokens and columns of each tile; without values, those behind the second show nothing new."""
    fake = is_fake(states)
    for first in range(0, min(len(states), 2 * rows) if fake else len(states), rows):
        for start in range(0, min(len(weight), 2 * COLUMNS) if fake else len(weight), COLUMNS):
            yield slice(first, first + rows), slice(start, start + COLUMNS)


def _logits(buffer: torch.Tensor, states: torch.Tensor, weight: torch.Tensor) -> torch.Tensor:
    return torch.mm(states, weight.t(), out=buffer[: len(states), : len(weight)])


def _places(tokens: torch.Tensor, columns: slice, width: int) -> tuple[torch.Tensor, torch.Tensor]:
    """Where in a tile each token is, of shape [tokens, 1], and whether it is there at all."""
    local = tokens - columns.start
    inside = (local >= 0) & (local < width)
    return local.where(inside, 0)[:, None], inside
