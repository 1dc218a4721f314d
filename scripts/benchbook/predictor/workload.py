"""What is to be predicted: training, a generation or a script, and among how many ranks it is divided."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any, Literal, get_args

from benchbook.content.formats import Count, Limit, Many, Name, Short, Stored

Precision = Literal["fp32", "bf16_autocast", "fp16_autocast", "bf16", "bf16_weights_autocast"]
Optimizer = Literal[
    "adamw_fused",
    "adamw_foreach",
    "adamw_loop",
    "sgd",
    "sgd_momentum",
    "adafactor",
    "adamw_8bit",
    "paged_adamw_8bit",
]
Attention = Literal["sdpa", "sdpa_flash", "sdpa_efficient", "sdpa_math", "eager", "eager_torch_1.10"]
Cache = Literal["dynamic", "static"]
Objective = Literal["supervised", "dpo", "grpo"]
Device = Literal["cuda", "cpu"]


class UnpredictableError(Exception):
    """Something cannot be predicted; says what is wrong and how to fix it."""

    def __init__(self, what: str, fix: str) -> None:
        super().__init__(f"{what}; {fix}")
        self.what = what
        self.fix = fix


@dataclass(frozen=True)
class Lora(Stored):
    """Low-rank adapters (Hu et al. 2021, arXiv 2106.09685); all other weights are frozen.

    Parameters:
        rank: Of the two factors of each adapter.
        targets: Last parts of the names of the linear layers that get one; none: all but the output head.
        four_bit: The linear layers below them are in NF4, as QLoRA has them (arXiv 2305.14314).
    """

    rank: Count
    targets: Many[Name] = ()
    four_bit: bool = False

    def __post_init__(self) -> None:
        at_least("rank", self.rank, 1)


@dataclass(frozen=True)
class Adapters(Stored):
    """What PEFT adds to a model, whose own weights it freezes.

    Parameters:
        config: Its settings, as in an adapter_config.json.
        fp32: Keep its weights in fp32 beside a model in 16 bits, as PEFT does (`autocast_adapter_dtype`).
    """

    config: dict[Name, Any]
    fp32: bool = True


@dataclass(frozen=True)
class Training(Stored):
    """One training step, repeated until its memory no longer changes.

    Parameters:
        batch: Samples per forward pass.
        sequence: Tokens per sample.
        precision: `bf16` holds the weights in it too; the autocasts keep them in fp32, but for
            `bf16_weights_autocast`, which is what adapters in fp32 beside weights in bf16 are trained with.
        optimizer: Which, and how it goes over the parameters.
        attention: `sdpa` is what the dispatcher of the device takes.
        checkpointing: Recompute each layer in the backward pass.
        accumulation: Forward and backward passes per step.
        clipping: Clip the norm of all gradients before the step.
        keep_gradients: Zero them after the step instead of freeing them.
        lora: Train adapters only, low-rank ones.
        dropout: Instead of every dropout of the configuration.
        lengths: Tokens per sample of each step in turn, `sequence` being the longest; none: so many in each.
        adapters: Train those of PEFT only.
        padded: Samples of several lengths lie side by side, so that attention takes a mask.
        use_cache: The model collects keys and values as for a generation, which `Trainer` forbids it.
        chunk: Tokens whose logits are made at once for the loss of next tokens; none: all of them, or as many
            as TRL takes for `dpo` and `grpo`.
        emptied: The allocator gives back what is free before the last step; what it reserves counts anew.
        objective: `supervised` is the model's own loss; `dpo` prefers one of two answers to the other, as a
            copy of the model sees them, or the same one without adapters; `grpo` first generates.
        completion: With `grpo`: tokens of each sample that are generated, the last ones.
        evaluation: Samples of a batch that is evaluated behind the last step; none: there is no such thing.
    """

    batch: Count
    sequence: Count
    precision: Precision = "fp32"
    optimizer: Optimizer = "adamw_fused"
    attention: Attention = "sdpa"
    checkpointing: bool = False
    accumulation: Count = 1
    clipping: bool = True
    keep_gradients: bool = False
    lora: Lora | None = None
    dropout: Annotated[float, Limit(ge=0, lt=1)] | None = None
    lengths: Many[Count] = ()
    adapters: Adapters | None = None
    padded: bool = False
    use_cache: bool = False
    emptied: bool = False
    chunk: Count | None = None
    objective: Objective = "supervised"
    completion: Count | None = None
    evaluation: Count | None = None

    @property
    def samples(self) -> int:
        """Samples that go through the model at once: of `dpo`, two answers per sample of the batch."""
        return 2 * self.batch if self.objective == "dpo" else self.batch

    def __post_init__(self) -> None:
        for name in ("batch", "sequence", "accumulation"):
            at_least(name, getattr(self, name), 1)
        for name in ("chunk", "completion", "evaluation"):
            if getattr(self, name) is not None:
                at_least(name, getattr(self, name), 1)
        self._check_objective()
        for length in self.lengths:
            at_least("a length", length, 1)
        if self.lengths and max(self.lengths) != self.sequence:
            raise UnpredictableError(
                f"sequence is {self.sequence}", f"give the longest of the lengths, {max(self.lengths)}"
            )
        one_of("precision", self.precision, get_args(Precision))
        one_of("optimizer", self.optimizer, get_args(Optimizer))
        one_of("attention", self.attention, get_args(Attention))
        if self.dropout is not None and not 0 <= self.dropout < 1:
            raise UnpredictableError(f"dropout is {self.dropout}", "give a share from 0 to below 1")

    def _check_objective(self) -> None:
        one_of("objective", self.objective, get_args(Objective))
        if (self.completion is not None) != (self.objective == "grpo"):
            fix = "give it with grpo, and with nothing else"
            raise UnpredictableError(f"completion is {self.completion} with {self.objective}", fix)
        if self.completion is not None and self.completion >= self.sequence:
            fix = f"give fewer than {self.sequence}: the rest is the prompt"
            raise UnpredictableError(f"completion is {self.completion} of {self.sequence} tokens", fix)
        if self.objective == "grpo" and (self.evaluation or self.lengths):
            fix = "leave out what belongs to other objectives"
            raise UnpredictableError("grpo has neither lengths nor an evaluation here", fix)


@dataclass(frozen=True)
class Inference(Stored):
    """A greedy generation: the prompt at once, then one token after the other.

    Parameters:
        batch: Prompts side by side.
        prompt: Tokens in each.
        new_tokens: Generated for each.
        precision: As for training, without gradients.
        attention: As for training.
        cache: Of keys and values; `static` is allocated whole before the prompt is read.
    """

    batch: Count
    prompt: Count
    new_tokens: Count = 1
    precision: Precision = "bf16"
    attention: Attention = "sdpa"
    cache: Cache = "dynamic"

    def __post_init__(self) -> None:
        for name in ("batch", "prompt", "new_tokens"):
            at_least(name, getattr(self, name), 1)
        one_of("precision", self.precision, get_args(Precision))
        one_of("attention", self.attention, get_args(Attention))
        one_of("cache", self.cache, get_args(Cache))


@dataclass(frozen=True)
class ScriptRun(Stored):
    """A script as it stands, which makes its own model and does its own work.

    Parameters:
        until: The last cell that is run: the one that trains.
        code: The digest of the script and its inputs: of others, it is another question.
        attention: As for training.
    """

    until: Name
    code: Short = ""
    attention: Attention = "sdpa"

    def __post_init__(self) -> None:
        one_of("attention", self.attention, get_args(Attention))


Workload = Training | Inference
WORKLOADS: dict[str, type[Workload | ScriptRun]] = {
    "training": Training,
    "inference": Inference,
    "run": ScriptRun,
}


def at_least(name: str, value: int, least: int) -> None:
    """Refuse a number that is not an integer or too small."""
    if isinstance(value, bool) or not isinstance(value, int) or value < least:
        raise UnpredictableError(f"{name} is {value!r}", f"give an integer from {least} on")


def one_of(name: str, value: str, known: tuple[str, ...]) -> None:
    """Refuse a word that is not among the known ones."""
    if value not in known:
        raise UnpredictableError(f"{name} is {value!r}", f"use one of {', '.join(known)}")


Kind = Literal["fsdp2", "tensor", "ddp"]


@dataclass(frozen=True)
class Sharding:
    """One group of ranks that share one model; each is given a batch of the workload's size.

    Parameters:
        kind: `fsdp2` is torch's `fully_shard` of each layer and of the whole; `tensor` is the plan that
            transformers has for the model; `ddp` keeps a replica per rank.
        ranks: How many.
        reshard_after_forward: With `fsdp2`: free each layer's gathered weights until its backward pass.
        mixed_precision: With `fsdp2`: compute in bf16, reduce gradients in fp32 (`MixedPrecisionPolicy`).
        gradient_as_bucket_view: With `ddp`: gradients lie in the buckets in which they are reduced.
    """

    kind: Kind
    ranks: int
    reshard_after_forward: bool = True
    mixed_precision: bool = False
    gradient_as_bucket_view: bool = False

    def __post_init__(self) -> None:
        one_of("sharding", self.kind, get_args(Kind))
        at_least("ranks", self.ranks, 2)
        for name, kind, usual in (
            ("reshard_after_forward", "fsdp2", True),
            ("mixed_precision", "fsdp2", False),
            ("gradient_as_bucket_view", "ddp", False),
        ):
            if getattr(self, name) != usual and self.kind != kind:
                raise UnpredictableError(
                    f"{name} means nothing to {self.kind}", f"leave it out, or use {kind}"
                )


# Tokens whose logits TRL computes at once for `dpo` and `grpo` (`TOKEN_CHUNK_SIZE` of 1.16.0).
TILE = 4096


def rows_of_a_tile(tokens: int) -> int:
    """How many tokens TRL's kernel takes at once, of so many whose log-probabilities are computed."""
    return min(tokens, TILE)


def rows_of_a_chunk(tokens: int, hidden: int, vocabulary: int) -> int:
    """How many tokens Liger's kernel takes at once: their logits are about as many numbers as all states.

    `fused_linear_cross_entropy_forward` of liger-kernel 0.8.5, `chunk_mem_const` 1.

    Parameters:
        tokens: In a batch.
        hidden: Numbers per token before the output head.
        vocabulary: Numbers per token behind it.
    """
    parts = -(-vocabulary // hidden)
    return min(tokens, 1 << (-(-tokens // parts) - 1).bit_length())
