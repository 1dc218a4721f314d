"""What is minimized: the loss that a model computes itself, or one of how probable it finds tokens.

The latter are those of TRL 1.16.0: `DPOTrainer`, whose reference is computed in each step, and `GRPOTrainer`,
which by default has none.
"""

from __future__ import annotations

from collections.abc import Mapping

import torch
from torch import nn
from torch.nn.functional import logsigmoid

from benchbook.predictor.adapters import adapters_off
from benchbook.predictor.autocast import autocast
from benchbook.predictor.chunked_loss import chunked_loss
from benchbook.predictor.models import body_and_head
from benchbook.predictor.tiled_scores import tiled_scores
from benchbook.predictor.workload import TILE, Training

# As far as memory goes, any factors do.
BETA = 0.1
ADVANTAGE = 1.0
# The answers of a pair: the chosen one and the rejected one.
ANSWERS = 2


def loss_of(
    model: nn.Module,
    batch: Mapping[str, torch.Tensor],
    workload: Training,
    device: str,
    reference: nn.Module | None = None,
) -> torch.Tensor:
    """The loss of a batch, of shape []; each pass through a model is under an autocast of its own.

    Parameters:
        model: That trains.
        batch: As `draw_batch` gives it for the workload.
        workload: Its objective and precision, and what belongs to them.
        device: Its type.
        reference: The model that `dpo` compares with; None: the same one without its adapters.

    Raises:
        UnpredictableError: The objective asks for next tokens, and the model predicts none.
    """
    if workload.objective == "dpo":
        return _preference_loss(model, batch, workload, device, reference)
    if workload.objective == "grpo":
        return _policy_loss(model, batch, workload, device)
    with autocast(device, workload.precision):
        if workload.chunk is not None:
            return chunked_loss(model, batch, workload.chunk)
        loss: torch.Tensor = model(**batch).loss
        return loss


def _preference_loss(
    model: nn.Module,
    batch: Mapping[str, torch.Tensor],
    workload: Training,
    device: str,
    reference: nn.Module | None,
) -> torch.Tensor:
    """Direct preference optimization (Rafailov et al. 2023, arXiv 2305.18290, equation 7).

    Of the samples, the first half are the chosen answers, the second the rejected ones. Prompts count as
    answers do: the share of them that TRL leaves out is not known.
    """
    policy = _scores(model, batch, workload, device, workload.sequence).sum(dim=1)
    with torch.no_grad():
        if reference is None:
            with adapters_off(model):
                known = _scores(model, batch, workload, device, workload.sequence).sum(dim=1)
        else:
            known = _scores(reference, batch, workload, device, workload.sequence).sum(dim=1)
    chosen, rejected = (policy - known).chunk(ANSWERS)
    return -logsigmoid(BETA * (chosen - rejected)).mean()


def _policy_loss(
    model: nn.Module, batch: Mapping[str, torch.Tensor], workload: Training, device: str
) -> torch.Tensor:
    """Group relative policy optimization of answers just generated (Shao et al. 2024, arXiv 2402.03300)."""
    scores = _scores(model, batch, workload, device, workload.completion or workload.sequence)
    return -(torch.exp(scores - scores.detach()) * ADVANTAGE).mean()


def _scores(
    model: nn.Module, batch: Mapping[str, torch.Tensor], workload: Training, device: str, tokens: int
) -> torch.Tensor:
    """How probable the last tokens of each sample are, as logarithms of shape [samples, tokens]."""
    body, head = body_and_head(model)
    inputs = {name: value for name, value in batch.items() if name != "labels"}
    with autocast(device, workload.precision):
        states = body(**inputs).last_hidden_state
        # No token follows the last one, which is counted all the same.
        scored = states.narrow(1, states.shape[1] - tokens, tokens).flatten(0, 1)
        # TRL picks those with a label.
        picked = scored[torch.arange(len(scored), device=scored.device)]
        following = batch["input_ids"][:, -tokens:].flatten()
        scores = tiled_scores(picked, head.weight, following, workload.chunk or TILE)
    return scores.view(-1, tokens)
