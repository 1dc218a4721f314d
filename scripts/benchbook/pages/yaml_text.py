"""Parse YAML safely, and as fast as PyYAML was built to."""

from __future__ import annotations

from typing import Any

import yaml

# The safe loader written in C, several times as fast, where PyYAML was built with libyaml.
_LOADER = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


class InvalidYamlError(Exception):
    """A text is not YAML; `line` is where, counted from 1."""

    def __init__(self, line: int) -> None:
        super().__init__(f"line {line}")
        self.line = line


def parse_yaml(text: str) -> Any:
    """The value that `text` holds.

    Raises:
        InvalidYamlError: It is not YAML.
    """
    try:
        return yaml.load(text, Loader=_LOADER)
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        raise InvalidYamlError(mark.line + 1 if mark else 1) from error
