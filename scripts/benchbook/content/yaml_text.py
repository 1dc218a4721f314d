"""Parse YAML safely, and as fast as PyYAML was built to."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import yaml

from benchbook.content.bounds import has_endless_number

# The safe loader written in C, several times as fast, where PyYAML was built with libyaml.
_LOADER = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
# No file of ours nests so deep; the loader follows each level by a call, and C has room for some thousands.
_DEEPEST = 30
WRITE_OUT = "write each value out where it stands"


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
    """A text is not YAML, or more than data.

    Parameters:
        line: Where, counted from 1.
        why: What the parser says.
        what: What is told of the text.
        fix: What to do about it.
    """

    def __init__(
        self, line: int, why: str, what: str = "is not valid YAML", fix: str = "fix its syntax"
    ) -> None:
        super().__init__(f"line {line}: {why}")
        self.line = line
        self.why = why
        self.what = what
        self.fix = fix


def parse_yaml(text: str) -> Any:
    """The value that `text` holds.

    Raises:
        InvalidYamlError: It is not YAML, or says more than what it holds: aliases, tags.
    """
    try:
        _refuse_more_than_data(text, tags=False)
        value = yaml.load(text, Loader=_Loader)
    except yaml.YAMLError as error:
        raise _invalid(error) from error
    except (ValueError, OverflowError) as error:
        # A date that no calendar has, or a number without end; `1:00:30.5` is one of base 60.
        raise InvalidYamlError(1, str(error)) from error
    if has_endless_number(value):
        raise InvalidYamlError(1, "a number is beyond 10 to the 308th")
    return value


# Each problem of a file asks for its line.
@lru_cache(maxsize=16)
def parse_nodes(text: str) -> yaml.Node | None:
    """The nodes of `text` with the marks where they begin, which nobody changes; None if it holds nothing.

    Raises:
        InvalidYamlError: It is not YAML, or holds aliases.
    """
    try:
        _refuse_more_than_data(text, tags=True)
        node: yaml.Node | None = yaml.compose(text, Loader=_LOADER)
    except yaml.YAMLError as error:
        raise _invalid(error) from error
    return node


def below(node: yaml.Node | None, key: str) -> yaml.Node | None:
    """What stands under `key` in a mapping, or in a list of mappings with one key each."""
    if isinstance(node, yaml.SequenceNode):
        return next((found for item in node.value if (found := below(item, key))), None)
    if isinstance(node, yaml.MappingNode):
        return next((value for name, value in node.value if name.value == key), None)
    return None


def _refuse_more_than_data(text: str, tags: bool) -> None:
    """Raise InvalidYamlError for what makes little text a large value, or one that is not what it looks like.

    An alias repeats what may hold aliases itself: ten lines of them are a value that no memory holds.
    """
    depth = 0
    for event in yaml.parse(text, Loader=_LOADER):
        depth += isinstance(event, yaml.CollectionStartEvent) - isinstance(event, yaml.CollectionEndEvent)
        odd = None
        if isinstance(event, yaml.NodeEvent) and event.anchor is not None:
            mark = "*" if isinstance(event, yaml.AliasEvent) else "&"
            odd = f"holds `{mark}{event.anchor}`, which repeats a value under a name"
        elif not tags and (tag := getattr(event, "tag", None)) is not None:
            odd = f"holds the tag `{tag}`"
        elif depth > _DEEPEST:
            odd = f"nests deeper than {_DEEPEST} levels"
        if odd is not None:
            line = event.start_mark.line + 1 if event.start_mark else 1
            raise InvalidYamlError(line, f"it {odd}", odd, WRITE_OUT)


def _invalid(error: yaml.YAMLError) -> InvalidYamlError:
    mark = getattr(error, "problem_mark", None)
    return InvalidYamlError(mark.line + 1 if mark else 1, str(error).replace("\n", " "))
