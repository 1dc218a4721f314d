"""How a model is divided among ranks, in the words of the frameworks."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, get_args

from benchbook.predictor.workload import UnpredictableError, at_least, one_of

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
