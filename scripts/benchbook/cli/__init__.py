"""The commands of `benchbook`: their options, and what they print."""
