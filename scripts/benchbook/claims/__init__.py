"""Claims: what a page asserts of two quantities, and the verdict of the records on it."""
