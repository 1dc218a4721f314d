"""Hold the tree to its promises, and so what others hand in."""
