"""The form of a file of coefficients, and the one function that reads it: for the check and for the site."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, fields, is_dataclass
from pathlib import Path
from typing import Annotated, Any, Literal, TypeVar, get_args

from pydantic import ValidationError

from benchbook.content.formats import Count, Limit, Name, Short, Stored
from benchbook.content.problems import BenchbookError, Problem
from benchbook.content.validation import adapter, form_problems, read_json
from benchbook.predictor.workload import Optimizer

T = TypeVar("T")

# What a setup chooses, and what a family leaves to the reader: the dimensions of a model.
CHOSEN = frozenset({"batch", "sequence", "completion", "chunk", "rank"})
DIMENSIONS = frozenset({"hidden", "intermediate", "heads", "groups", "head", "vocabulary", "layers"})
TRAINING = re.compile(
    r"(?P<precision>fp32|bf16_autocast|bf16)(?P<adapters> lora| qlora)? (?:sdpa|eager)"
    r"(?P<form> chunked| dpo| grpo)?(?: checkpointing)?(?P<again> accumulation)?"
)
GENERATION = re.compile(r"(?P<precision>fp32|bf16) (?:sdpa|eager)")
OPTIMIZER = re.compile(rf"(?:fp32|bf16|lora) (?:{'|'.join(get_args(Optimizer))})")
# Some models were derived before states lay in pages, and those of adapters never do.
SOMETIMES = "paged_"
# Of terms, and of numbers in a sum: some twenty times what any file has; and no memory is so large.
MOST = 1000
LARGEST = 1e18

Power = Annotated[int, Limit(ge=0, le=8)]
# The places of terms and their factors, one after the other. Less than nothing is what a layer gives back.
Sum = Annotated[
    list[Annotated[float, Limit(ge=-LARGEST, le=LARGEST)]], Limit(max_length=MOST, fail_fast=True)
]
Positive = Annotated[list[Annotated[float, Limit(ge=0, le=LARGEST)]], Limit(max_length=MOST, fail_fast=True)]


@dataclass(frozen=True)
class PeakMoment(Stored):
    """What is held at a moment of a generation or an evaluation, by part."""

    gradients: Sum | None = None
    activations: Sum | None = None
    copies: Sum | None = None
    cache: Sum | None = None
    temporary: Positive | None = None
    workspaces: Positive | None = None


@dataclass(frozen=True, kw_only=True)
class TrainingMoment(PeakMoment):
    """What is held at a moment of a training step, and what computes then."""

    at: Literal["forward", "backward", "step"]


@dataclass(frozen=True)
class StoredGeneration(Stored):
    """The moments of a prompt and of a further token."""

    prefill: Annotated[list[PeakMoment], Limit(min_length=1)]
    decode: Annotated[list[PeakMoment], Limit(min_length=1)]


@dataclass(frozen=True)
class StoredUnits(Stored):
    """Numbers outside of all layers, and in one."""

    root: Positive
    layer: Positive


@dataclass(frozen=True)
class StoredStates(Stored):
    """What an optimizer keeps, and what its step holds beside that."""

    states: Positive
    temporary: Positive


@dataclass(frozen=True, kw_only=True)
class FamilyFile(Stored):
    """The content of `snippets/coefficients/families/<family>.json`."""

    schema: Count
    predictor: Count
    torch: Short
    transformers: Short
    variables: list[Name]
    terms: Annotated[list[list[Power]], Limit(max_length=MOST)]
    weights: dict[Short, Positive]
    units: StoredUnits
    training: dict[Short, list[TrainingMoment]]
    inference: dict[Short, StoredGeneration] | None = None
    evaluation: dict[Short, Annotated[list[PeakMoment], Limit(min_length=1)]]
    generation: dict[Short, StoredGeneration] | None = None
    optimizers: dict[Short, StoredStates]

    def __post_init__(self) -> None:
        self._check_terms()
        for name, pairs in _sums(self):
            self._check_sum(name, pairs)
        for name, moments in self.training.items():
            self._check_training(name, moments)
        for name in self.inference or {}:
            self._check_known("weights", self._matched(GENERATION, "inference", name)["precision"], name)
        if not any(name.startswith("fp32 ") for name in self.training):
            raise ValueError("training has no setup in fp32")
        for name in self.optimizers:
            self._matched(OPTIMIZER, "optimizers", name)
        for name in self.evaluation:
            self._check_known("training", name, name)
        for name in self.generation or {}:
            self._check_known("training", f"{name} grpo", name)

    @property
    def _variables(self) -> frozenset[str]:
        return CHOSEN | DIMENSIONS

    @property
    def _has_head(self) -> bool:
        return {"hidden", "vocabulary"} <= set(self.variables)

    def _check_terms(self) -> None:
        known = set(self.variables)
        if len(known) != len(self.variables) or not {"batch", "sequence", "rank"} <= known <= self._variables:
            raise ValueError(f"variables are {', '.join(self.variables)}, which are none of such a file")
        if any(len(powers) != len(self.variables) for powers in self.terms):
            raise ValueError("a term has another number of powers than there are variables")

    def _check_sum(self, name: str, pairs: list[float]) -> None:
        known = all(place.is_integer() and 0 <= place < len(self.terms) for place in map(float, pairs[::2]))
        if len(pairs) % 2 or not known:
            raise ValueError(f"{name} is no sum of these terms")

    def _check_training(self, name: str, moments: list[TrainingMoment]) -> None:
        words = self._matched(TRAINING, "training", name)
        if [moment.at == "step" for moment in moments] != [False] * (len(moments) - 1) + [True]:
            raise ValueError(f"training.{name} does not end with the one step of the optimizer")
        other = name.removesuffix(" accumulation") if words["again"] else f"{name} accumulation"
        self._check_known("training", other, name)
        # The tiles of DPO and GRPO are as large as TRL makes them, chunks as the head makes them.
        known = self._has_head or words["form"] != " chunked"
        if words["form"] and not ("chunk" in self.variables and known):
            raise ValueError(
                f"training.{name} goes by chunks, of which the file does not say how large they are"
            )
        if words["form"] == " grpo":
            self._check_completion(name)
        width = "bf16" if words["precision"] == "bf16" else "fp32"
        self._check_known("weights", f"{width}{words['adapters'] or ''}", name)
        for optimizer in get_args(Optimizer):
            if not optimizer.startswith(SOMETIMES):
                key = f"{'lora' if words['adapters'] else width} {optimizer}"
                self._check_known("optimizers", key, name)

    def _check_completion(self, name: str) -> None:
        if "completion" not in self.variables:
            raise ValueError(f"training.{name} learns from completions, which are no variable of the file")
        if name.partition(" grpo")[0] not in (self.generation or {}):
            raise ValueError(f"generation has nothing of what the setup {name!r} begins with")

    def _check_known(self, part: str, key: str, name: str) -> None:
        """What the setup `name` needs is there, and is not nothing where it is weights."""
        if key not in getattr(self, part) or (part == "weights" and not self.weights[key]):
            raise ValueError(f"{part} has no {key!r}, which the setup {name!r} needs")

    @staticmethod
    def _matched(pattern: re.Pattern[str], part: str, name: str) -> re.Match[str]:
        found = pattern.fullmatch(name)
        if found is None:
            raise ValueError(f"{part} has {name!r}, which is no setup")
        return found


@dataclass(frozen=True, kw_only=True)
class ModelFile(FamilyFile):
    """The content of `snippets/coefficients/models/<model>.json`.

    Parameters:
        head: The numbers per token before and behind the output head, where the loss can be made by chunks.
        positions: How many tokens it reads at most; None where there is no limit.
        window: How many it attends to at once, likewise.
        configuration: The digest of what it was derived from.
    """

    head: Annotated[list[Count], Limit(min_length=2, max_length=2)] | None = None
    positions: Count | None
    window: Count | None
    configuration: Annotated[str, Limit(pattern="^[0-9a-f]{12}$")]

    @property
    def _variables(self) -> frozenset[str]:
        return CHOSEN

    @property
    def _has_head(self) -> bool:
        return self.head is not None


def _sums(value: Any, name: str = "") -> Iterator[tuple[str, list[float]]]:
    """Every sum in a file, by the keys that lead to it."""
    if isinstance(value, FamilyFile):
        for part in ("weights", "units", "training", "inference", "evaluation", "generation", "optimizers"):
            yield from _sums(getattr(value, part), part)
    elif is_dataclass(value) and not isinstance(value, type):
        for item in fields(value):
            yield from _sums(getattr(value, item.name), f"{name}.{item.name}")
    elif isinstance(value, Mapping):
        for key, item in value.items():
            yield from _sums(item, f"{name}.{key}")
    elif isinstance(value, list) and value and isinstance(value[0], Stored):
        for item in value:
            yield from _sums(item, name)
    elif isinstance(value, list):
        yield name, value


def read_coefficients(path: Path) -> dict[str, Any]:
    """The coefficients in a file of the form of its folder: of a model, or of a family.

    Raises:
        BenchbookError: It is not of that form.
    """
    kind = FamilyFile if path.parent.name == "families" else ModelFile
    return read_derived(path, kind, f"run `benchbook coefficients {path.stem}`")[0]


def read_derived(path: Path, kind: type[T], fix: str) -> tuple[dict[str, Any], T]:
    """What a file of the form `kind` below `snippets/coefficients` holds, as it stands and as that.

    Raises:
        BenchbookError: It cannot be read, or is not of that form; `fix` makes it anew.
    """
    shown = path.relative_to(next(one for one in path.parents if one.name == "snippets").parent).as_posix()
    table, text, problems = read_json(path, shown)
    if problems:
        raise BenchbookError(*(Problem(shown, one.line, one.what, fix) for one in problems))
    try:
        return table, adapter(kind).validate_python(table)
    except ValidationError as error:
        found = form_problems(kind, table, shown, text, lambda keys: (keys, fix))
        raise BenchbookError(*found) from error
