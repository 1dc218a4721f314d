"""Hold the list of models to itself: each has its own title, kind and number format."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from benchbook.calculator.listing import ModelEntry, config_of, model_entries, models_path
from benchbook.content.positions import toml_line
from benchbook.content.problems import BenchbookError, Problem
from benchbook.content.project import Project

# By what share a model may have more or fewer parameters than its title says: "Gemma 2 2B" has 2.6 billion.
OFF_TITLE = 1 / 3
# "0.5B", "110M"; of experts "8x7B", where what they share is counted with each.
SIZE = re.compile(r"(?<![\w.])(?:(?P<experts>\d+)x)?(?P<number>\d+(?:\.\d+)?)(?P<unit>[MBT])\b")
SIZES = {"M": 1e6, "B": 1e9, "T": 1e12}
# How sources write a number format, beside its name, and its bytes.
_SPELLED = {"float32": ("f32", "fp32"), "float16": ("f16", "fp16"), "bfloat16": ("bf16",)}
_BYTES = {"float32": 4, "float16": 2, "bfloat16": 2}
# A size of a file in bytes, or as `ls -lh` rounds it.
_SIZE = re.compile(r"\b(?P<number>\d{1,15}(?:\.\d{1,3})?)(?P<unit>[MG]?)\b")
_UNITS = {"": 1, "M": 2**20, "G": 2**30}
_OFF_SIZE = 0.1


def listed_model_problems(project: Project) -> Iterator[Problem]:
    """Models of another title than their name and size, kind than their configuration, format than quoted.

    Raises:
        BenchbookError: Their list is not what such a list is.
    """
    path = models_path(project)
    for name, entry in model_entries(project).items():
        for key, what, fix in _odd_entry(project, name, entry):
            yield Problem(project.relative(path), toml_line(path.read_text("utf-8"), (name, key)), what, fix)


def _odd_entry(project: Project, name: str, entry: ModelEntry) -> Iterator[tuple[str, str, str]]:
    """The keys of an entry that contradict what lies beside them, with what is wrong and how to mend it."""
    if (odd := _odd_title(name, entry)) is not None:
        yield ("title", *odd)
    try:
        kind = _kind_of(config_of(project, name))
    except BenchbookError:
        kind = None  # told with its coefficients
    if kind not in (None, entry.kind):
        what = f"`kind` is {entry.kind}, and by {name}.json it is {kind}"
        yield "kind", what, f"write {kind}, or copy the configuration again"
    if entry.dtype and not _says(entry.dtype_words, entry.dtype, entry.parameters):
        what = f"`dtype` is {entry.dtype}, which its `dtype_words` do not say"
        yield "dtype", what, "quote what names the format, or the size of the file"


def _odd_title(name: str, entry: ModelEntry) -> tuple[str, str] | None:
    """Why the title of a model is that of another, by its words or its size, and what to do."""
    file = _only_letters(name)
    words = [_only_letters(word) for word in entry.title.split()]
    other = next((word for word in words if word not in file), None)
    if other is not None:
        what = f"the title {entry.title} says {other!r}, and the model is called {name}"
        return what, "give each model its own title, or call its files as it is called"
    sizes = [
        int(size["experts"] or 1) * float(size["number"]) * SIZES[size["unit"]]
        for size in SIZE.finditer(entry.title)
    ]
    counted = entry.parameters
    # Of a mixture of experts a title may also say how many compute at a time.
    if counted and sizes and all(abs(counted - size) > OFF_TITLE * size for size in sizes):
        what = f"the title {entry.title} does not agree with the {counted} parameters of {name}"
        return what, "give each model its own title, or count its parameters again"
    return None


def _only_letters(name: str) -> str:
    """The letters, digits and points of a name, in lower case: of "GPT-2 XL" and of "gpt2-xl" the same."""
    return re.sub(r"[^a-z0-9.]", "", name.casefold())


def _kind_of(config: Mapping[str, Any]) -> str | None:
    """The kind of a model by its configuration; None where that does not tell it."""
    architectures = config.get("architectures")
    named = str(architectures[0]) if isinstance(architectures, list) and architectures else ""
    if config.get("is_encoder_decoder") is True:
        return "encoder-decoder"
    if named.endswith(("ForCausalLM", "LMHeadModel")):
        return (
            "mixture" if any(config.get(key) for key in ("num_local_experts", "num_experts")) else "decoder"
        )
    return "encoder" if named.endswith(("ForSequenceClassification", "ForMaskedLM")) else None


def _says(words: str, dtype: str, parameters: int | None) -> bool:
    """Whether words name a number format, and no other, or the size of as many parameters in it."""
    said = set(re.findall(r"[a-z0-9]+", words.casefold()))
    named = {one for one, spellings in _SPELLED.items() if said & {one, *spellings}}
    if named or parameters is None:
        return named == {dtype}
    sizes = (float(size["number"]) * _UNITS[size["unit"]] for size in _SIZE.finditer(words))
    return any(abs(size / (parameters * _BYTES[dtype]) - 1) < _OFF_SIZE for size in sizes)
