"""Predict the memory that training or generating with a transformers model takes on a GPU, without one."""

from benchbook.predictor.prediction import Prediction, predict
from benchbook.predictor.workload import Inference, Lora, Training, UnpredictableError

__all__ = ["Inference", "Lora", "Prediction", "Training", "UnpredictableError", "predict"]
