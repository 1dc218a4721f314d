"""The page of the memory calculator: its form, the models it knows, its table of errors."""
