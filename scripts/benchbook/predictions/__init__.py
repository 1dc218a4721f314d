"""Predictions as records of their own kind: what is asked of the predictor, what it said, whether that still holds."""
