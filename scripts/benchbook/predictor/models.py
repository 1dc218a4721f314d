"""Turn a configuration into a transformers model on a device, and into the batches it is trained on."""

from __future__ import annotations

import difflib
import logging
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import torch
import transformers
from torch import nn
from transformers import AutoConfig, PreTrainedConfig
from transformers.initialization import no_init_weights
from transformers.models.auto import modeling_auto
from transformers.models.auto.auto_mappings import CONFIG_MAPPING_NAMES

from benchbook.predictor.workload import Training, UnpredictableError, Workload

Config = Mapping[str, Any] | PreTrainedConfig
# Heads by what the configuration is known for, the first that it has.
HEADS = (
    modeling_auto.MODEL_FOR_SEQ_TO_SEQ_CAUSAL_LM_MAPPING_NAMES,
    modeling_auto.MODEL_FOR_MASKED_LM_MAPPING_NAMES,
    modeling_auto.MODEL_FOR_CAUSAL_LM_MAPPING_NAMES,
)
# What models call the table with a row for each position, if they have one: beyond it, they cannot run.
POSITION_TABLES = ("embed_positions", "position_embedding", "position_embeddings", "positions_embed", "wpe")
DROPOUTS = (
    "attention_dropout",
    "attention_probs_dropout_prob",
    "activation_dropout",
    "attn_pdrop",
    "classifier_dropout",
    "classifier_dropout_prob",
    "dropout",
    "dropout_rate",
    "embd_pdrop",
    "embedding_dropout",
    "hidden_dropout",
    "hidden_dropout_prob",
    "resid_pdrop",
)


def read_config(config: Config) -> PreTrainedConfig:
    """The configuration as transformers holds it, a copy.

    Raises:
        UnpredictableError: The model type is unknown, or its dimensions do not fit together.
    """
    fields = dict(config.to_dict() if isinstance(config, PreTrainedConfig) else config)
    kind = fields.pop("model_type", None)
    if kind is None:
        raise UnpredictableError("it names no model_type", "add one, such as bert or llama")
    if kind not in CONFIG_MAPPING_NAMES:
        near = difflib.get_close_matches(str(kind), CONFIG_MAPPING_NAMES, n=3)
        known = f"use {' or '.join(near)}" if near else "use one that transformers knows"
        raise UnpredictableError(
            f"transformers {transformers.__version__} knows no model_type {kind!r}", known
        )
    with _explained():
        return AutoConfig.for_model(kind, **fields)


def build_model(
    config: PreTrainedConfig, device: str, dtype: torch.dtype, attention: str, generating: bool
) -> nn.Module:
    """The model without values, in evaluation mode.

    Parameters:
        config: Its `architectures` choose the head; without any, one that models language.
        device: Where, fake or not.
        dtype: Of its weights.
        attention: An implementation registered with transformers.
        generating: It shall generate: a head that cannot is refused.
    """
    architecture = _architecture(config)
    if generating and not hasattr(architecture, "generate"):
        raise UnpredictableError(
            f"{architecture.__name__} generates nothing", "name an architecture with a language model's head"
        )
    with _explained(), _quiet(), no_init_weights(), torch.device(device):
        model: nn.Module = architecture._from_config(config, dtype=dtype, attn_implementation=attention)
    # Without values there is no initialisation, which would have let tied weights share their storage.
    tie: Any = model.tie_weights
    tie()
    return model.eval()


def draw_batch(model: nn.Module, workload: Training, device: str) -> dict[str, torch.Tensor]:
    """Token ids, and labels such as the model's head wants them; all zero.

    For `dpo`, two answers to each prompt: all that are chosen, then all that are rejected.
    """
    ids = torch.zeros(workload.samples, workload.sequence, dtype=torch.long, device=device)
    head = type(model).__name__
    if head.endswith("QuestionAnswering"):
        place = torch.zeros(workload.samples, dtype=torch.long, device=device)
        return {"input_ids": ids, "start_positions": place, "end_positions": place.clone()}
    whole = head.endswith(("SequenceClassification", "MultipleChoice", "NextSentencePrediction"))
    labels = torch.zeros(ids.shape[:1] if whole else ids.shape, dtype=torch.long, device=device)
    batch = {"input_ids": ids, "labels": labels}
    if workload.padded:
        batch["attention_mask"] = torch.ones_like(ids)
        batch["attention_mask"][-1, -1] = 0
    return batch


def body_and_head(model: nn.Module) -> tuple[Any, Any]:
    """What computes the last states of a model, and what reads next tokens from them.

    Raises:
        UnpredictableError: It has no such head.
    """
    whole: Any = model
    head = getattr(whole, "get_output_embeddings", lambda: None)()
    body = getattr(whole, "base_model", None)
    if head is None or body in (None, model) or getattr(whole.config, "is_encoder_decoder", False):
        fix = "take a decoder with an output head, or leave out what asks for next tokens"
        raise UnpredictableError(f"{type(model).__name__} predicts no next token from its last states", fix)
    return body, head


def ready_for_training(config: PreTrainedConfig, workload: Training) -> None:
    """Change a configuration as training does: a cache only if asked for, and the workload's dropout."""
    for each in (config, *(getattr(config, name) for name in config.sub_configs)):
        # As transformers' Trainer: no later token will ask for keys and values.
        each.use_cache = workload.use_cache
        for name in DROPOUTS:
            if workload.dropout is not None and isinstance(getattr(each, name, None), int | float):
                setattr(each, name, workload.dropout)


def check_positions(model: nn.Module, workload: Workload) -> None:
    """Refuse more tokens than a model has positions: without values, many models would not notice.

    Raises:
        UnpredictableError: The model looks its positions up in a table, and that is too short.
    """
    config: Any = model.config
    for name, module in model.named_modules():
        path = name.split(".")
        if not isinstance(module, nn.Embedding) or path[-1] not in POSITION_TABLES:
            continue
        # BART and its like leave the first rows out; RoBERTa begins behind the row for padding.
        padding = -1 if module.padding_idx is None else module.padding_idx
        offset: Any = getattr(module, "offset", 0)
        positions = module.num_embeddings - max(padding + 1, offset)
        if isinstance(workload, Training):
            needed = workload.sequence
        elif config.is_encoder_decoder:
            needed = workload.new_tokens if "decoder" in path else workload.prompt
        else:
            needed = workload.prompt + workload.new_tokens - 1
        if needed > positions:
            raise UnpredictableError(
                f"{needed} tokens are more than the {positions} positions of {config.model_type}",
                f"give {positions} at most, or another model",
            )


def replace_tensors(
    module: nn.Module, convert: Callable[[torch.Tensor], torch.Tensor], recurse: bool = True
) -> None:
    """Put what `convert` makes of them in the place of a module's parameters and buffers, shared ones once.

    torch swaps the values of those that are there, which fake tensors with weak references refuse.
    """
    # With the tensor that was there, whose number would be given anew if it were freed.
    made: dict[int, tuple[torch.Tensor, Any]] = {}

    def replacement(tensor: torch.Tensor) -> Any:
        if id(tensor) not in made:
            with torch.no_grad():
                new = convert(tensor)
            weight = isinstance(tensor, nn.Parameter) and new is not tensor
            made[id(tensor)] = tensor, nn.Parameter(new, tensor.requires_grad) if weight else new
        return made[id(tensor)][1]

    for part in module.modules() if recurse else (module,):
        for places in (part._parameters, part._buffers):
            for name, tensor in places.items():
                if tensor is not None:
                    places[name] = replacement(tensor)


def layer_names(model: nn.Module) -> dict[str, str]:
    """The layer of each module by its full name: down to the first number, or two levels deep."""
    return {name: _layer_of(name) for name, _ in model.named_modules() if name}


def _layer_of(name: str) -> str:
    parts = name.split(".")
    for place, part in enumerate(parts):
        if part.isdigit():
            return ".".join(parts[: place + 1])
    return ".".join(parts[:2])


def _architecture(config: PreTrainedConfig) -> Any:
    named = (getattr(config, "architectures", None) or [None])[0]
    if named is None:
        for heads in HEADS:
            if config.model_type in heads:
                named = heads[config.model_type]
                break
        else:
            raise UnpredictableError(
                f"no head for language is known for {config.model_type}", "name the class in architectures"
            )
    found = getattr(transformers, named, None)
    if found is None or not hasattr(found, "_from_config"):
        raise UnpredictableError(
            f"transformers {transformers.__version__} has no model {named!r}",
            "give architectures one that it has",
        )
    return found


@contextmanager
def _explained() -> Iterator[None]:
    try:
        yield
    except UnpredictableError:
        raise
    except Exception as error:
        said = str(error).strip().splitlines() or [type(error).__name__]
        raise UnpredictableError(
            f"transformers cannot build the model: {' '.join(line.strip() for line in said)}",
            "correct the dimensions",
        ) from error


@contextmanager
def _quiet() -> Iterator[None]:
    logger = logging.getLogger("transformers")
    level = logger.level
    logger.setLevel(logging.ERROR)
    try:
        yield
    finally:
        logger.setLevel(level)
