"""Fit what the predictor says to formulas that a browser computes, and compare the two."""
