"""The frame around the pages: theme, languages, search and what a whole site needs."""
