"""Hold translations to their English pages, section by section, and tell what has changed since."""
