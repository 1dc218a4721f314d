"""Predict the memory that training or generating with a transformers model takes on a GPU, without one."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from benchbook.predictor.workload import Adapters, Inference, Lora, Sharding, Training, UnpredictableError

if TYPE_CHECKING:
    from benchbook.predictor.prediction import Prediction, predict
    from benchbook.predictor.ranks import predict_ranks

__all__ = [
    "Adapters",
    "Inference",
    "Lora",
    "Prediction",
    "Sharding",
    "Training",
    "UnpredictableError",
    "predict",
    "predict_ranks",
]


def __getattr__(name: str) -> Any:
    # The command line reads what can be asked on machines without torch, which only an answer needs.
    if name == "predict_ranks":
        from benchbook.predictor import ranks

        return ranks.predict_ranks
    if name not in ("Prediction", "predict"):
        raise AttributeError(f"module {__name__} has no attribute {name}")
    from benchbook.predictor import prediction

    return getattr(prediction, name)
