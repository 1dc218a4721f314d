"""Predictions as records of their own kind: what the predictor is asked, what it said, whether that holds."""
