"""What samples say: summaries, paired comparisons, and which of two is less."""
