"""Look up what was recorded: references, measurements, freshness, verdicts; knows no HTML."""
