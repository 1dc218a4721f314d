"""How each language writes: the words of its interface, numbers, units, and the direction of text."""
