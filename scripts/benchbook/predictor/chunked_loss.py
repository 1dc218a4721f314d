"""The loss of next tokens whose logits are never there at once: a chunk of tokens after the other."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import torch
from torch import nn
from torch._subclasses.fake_tensor import is_fake

from benchbook.predictor.models import body_and_head

IGNORED = -100


def chunked_loss(model: nn.Module, batch: Mapping[str, torch.Tensor], rows: int) -> torch.Tensor:
    """The mean loss of the next tokens, whose gradients come into being with it, in the forward pass.

    Parameters:
        model: Of transformers, with an output head that reads the last states of its body.
        batch: `input_ids` and `labels` of shape [samples, tokens], and what else the body takes.
        rows: Tokens whose logits are made at once.

    Raises:
        UnpredictableError: The model has no such head.
    """
    body, head = body_and_head(model)
    inputs = {name: value for name, value in batch.items() if name != "labels"}
    states = body(**inputs).last_hidden_state
    # The last token has no next one.
    following = nn.functional.pad(batch["labels"], (0, 1), value=IGNORED)[..., 1:].contiguous()
    apply: Callable[..., torch.Tensor] = _ChunkedLoss.apply
    return apply(states.reshape(-1, states.shape[-1]), head.weight, following.view(-1), rows)


class _ChunkedLoss(torch.autograd.Function):
    """Cross-entropy of a linear layer's outputs, by chunks, as Liger's kernel has it (arXiv 2410.10989).

    States and the head's weights have gradients as large as they are, kept until the backward pass; logits
    turn into their gradients where they stand.
    """

    @staticmethod
    def forward(
        ctx: Any, states: torch.Tensor, weight: torch.Tensor, labels: torch.Tensor, rows: int
    ) -> torch.Tensor:
        states_grad = torch.zeros_like(states)
        weight_grad = torch.zeros_like(weight) if ctx.needs_input_grad[1] else None
        losses = torch.zeros(len(states), dtype=torch.float32, device=states.device)
        counted = (labels != IGNORED).sum().clamp(min=1)
        # Where no autocast converts them, all chunks are computed in one place.
        place = None
        if states.dtype == weight.dtype == computed_in(states):
            place = states.new_empty((rows, len(weight)))
        # Without values, chunks behind the second show nothing new.
        end = min(len(states), 2 * rows) if is_fake(states) else len(states)
        for first in range(0, end, rows):
            some, known = states[first : first + rows], labels[first : first + rows]
            logits = (
                some @ weight.t() if place is None else torch.mm(some, weight.t(), out=place[: len(some)])
            )
            losses[first : first + rows] = _into_gradients(logits, known, counted)
            if place is None:
                states_grad[first : first + rows] = logits @ weight
            else:
                torch.mm(logits, weight, out=states_grad[first : first + rows])
            if weight_grad is not None:
                add_product(weight_grad, logits, some)
            del logits
        ctx.save_for_backward(states_grad, weight_grad)
        return losses.sum() / counted

    @staticmethod
    def backward(ctx: Any, *gradients: torch.Tensor) -> tuple[torch.Tensor | None, ...]:
        states_grad, weight_grad = ctx.saved_tensors
        for known in (states_grad, weight_grad):
            if known is not None:
                known.mul_(gradients[0])
        return states_grad, weight_grad, None, None


def computed_in(states: torch.Tensor) -> torch.dtype:
    """The type that products of these are in: autocast's, where there is one."""
    kind = states.device.type
    return torch.get_autocast_dtype(kind) if torch.is_autocast_enabled(kind) else states.dtype


def _into_gradients(logits: torch.Tensor, labels: torch.Tensor, counted: torch.Tensor) -> torch.Tensor:
    """Turn logits of shape [tokens, vocabulary] into gradients of the mean loss; gives each token's loss."""
    told = labels != IGNORED
    places = labels.where(told, 0)[:, None]
    highest = logits.amax(dim=-1, keepdim=True)
    right = logits.gather(-1, places) - highest
    total = logits.sub_(highest).exp_().sum(dim=-1, keepdim=True)
    logits.div_(total).scatter_add_(-1, places, -torch.ones_like(right))
    logits.mul_(told[:, None]).div_(counted)
    return torch.where(told, (total.log() - right)[:, 0].float(), 0.0)


def add_product(total: torch.Tensor, gradients: torch.Tensor, states: torch.Tensor) -> None:
    """Add what a chunk contributes to the gradient of the weights: on a GPU in place, in any precision."""
    same = states.to(gradients.dtype)
    if total.dtype == gradients.dtype:
        torch.addmm(total, gradients.t(), same, out=total)
    elif total.device.type == "cpu":
        total += (gradients.t() @ same).float()
    else:
        torch.addmm(total, gradients.t(), same, out_dtype=torch.float32, out=total)
