"""Parse YAML safely, and as fast as PyYAML was built to."""

from __future__ import annotations

from typing import Any

import yaml

# The safe loader written in C, several times as fast, where PyYAML was built with libyaml.
_LOADER = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


class _Loader(_LOADER):  # type: ignore[misc, valid-type]
    """The safe loader, which takes no key twice: the first of the two would be lost without a word."""

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Any, Any]:
        seen: set[str] = set()
        for key, _ in node.value:
            if isinstance(key, yaml.ScalarNode) and key.tag != "tag:yaml.org,2002:merge":
                if key.value in seen:
                    raise yaml.constructor.ConstructorError(
                        None, None, f"the key `{key.value}` is there twice", key.start_mark
                    )
                seen.add(key.value)
        found: dict[Any, Any] = super().construct_mapping(node, deep)
        return found


class InvalidYamlError(Exception):
    """A text is not YAML; `line` is where, counted from 1, and `why` is what the parser says."""

    def __init__(self, line: int, why: str) -> None:
        super().__init__(f"line {line}: {why}")
        self.line = line
        self.why = why


def parse_yaml(text: str) -> Any:
    """The value that `text` holds.

    Raises:
        InvalidYamlError: It is not YAML.
    """
    try:
        return yaml.load(text, Loader=_Loader)
    except yaml.YAMLError as error:
        raise _invalid(error) from error


def parse_nodes(text: str) -> yaml.Node | None:
    """The nodes of `text` with the marks where they begin; None if it holds nothing.

    Raises:
        InvalidYamlError: It is not YAML.
    """
    try:
        node: yaml.Node | None = yaml.compose(text, Loader=_LOADER)
    except yaml.YAMLError as error:
        raise _invalid(error) from error
    return node


def _invalid(error: yaml.YAMLError) -> InvalidYamlError:
    mark = getattr(error, "problem_mark", None)
    return InvalidYamlError(mark.line + 1 if mark else 1, str(error).replace("\n", " "))
