"""What the calculator computes from has a form and a size that can be true, or check and site name the file."""

from __future__ import annotations

import copy
import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from benchbook.calculator.checking import (
    AKIN,
    MADE_ALIKE,
    coefficient_problems,
    config_digest,
    stale_coefficients,
)
from benchbook.calculator.listing import coefficient_files, coefficients_path, load_coefficients, points_path
from benchbook.calculator.points import load_points
from benchbook.content.problems import BenchbookError
from benchbook.content.project import Project
from builders import write

HANDBOOK = Project(Path(__file__).parents[2])
NAME = "gpt2"
Table = dict[str, Any]
Damage = Callable[[Table], object]


@pytest.fixture
def project(tmp_path: Path) -> Project:
    """A checkout with one model, its coefficients, and the points of it."""
    project = Project(tmp_path)
    config = f"snippets/models/{NAME}.json"
    write(tmp_path / config, (HANDBOOK.root / config).read_text("utf-8"))
    models = 'title = "GPT-2"\nkind = "decoder"\nparameters = 124_439_808\n'
    write(tmp_path / "snippets/models/models.toml", f"[{NAME}]\n{models}")
    path = coefficients_path(project, NAME)
    path.parent.mkdir(parents=True)
    shutil.copy(coefficients_path(HANDBOOK, NAME), path)
    points = json.loads(points_path(HANDBOOK).read_text("utf-8"))
    points["points"] = [point for point in points["points"] if point["model"] == NAME]
    write(points_path(project), json.dumps(points))
    return project


def said(project: Project) -> list[str]:
    """What the check says, families left out: there are none."""
    return [str(one) for one in coefficient_problems(project) if "never derived" not in one.what]


def change(path: Path, damage: Damage) -> None:
    table = json.loads(path.read_text("utf-8"))
    damage(table)
    write(path, json.dumps(table))


def scaled(value: Any, by: float) -> Any:
    """Every factor of the sums in a table, times `by`."""
    if isinstance(value, dict):
        return {key: scaled(item, by) for key, item in value.items()}
    if value and isinstance(value[0], dict):
        return [
            {key: item if key == "at" else scaled(item, by) for key, item in one.items()} for one in value
        ]
    return [item if place % 2 == 0 else item * by for place, item in enumerate(value)]


def fewer_activations(*kinds: str) -> Damage:
    """Trainings of these kinds, or of all, hold a third of their activations."""

    def fewer(table: Table) -> None:
        moments = (one for kind in kinds or table["training"] for one in table["training"][kind])
        for moment in moments:
            if "activations" in moment:
                moment["activations"] = scaled(moment["activations"], 0.3)

    return fewer


def test_what_was_derived_has_that_form(project: Project) -> None:
    assert said(project) == []
    for path in sorted((HANDBOOK.snippets / "coefficients").glob("*/*.json")):
        assert load_coefficients(path) == json.loads(path.read_text("utf-8"))


def test_a_model_need_have_no_loss_by_chunks_and_no_states_in_pages(project: Project) -> None:
    def older(table: Table) -> None:
        del table["head"]
        for part in ("training", "evaluation"):
            table[part] = {key: item for key, item in table[part].items() if "chunked" not in key}
        for part in ("training", "optimizers"):
            table[part] = {key: item for key, item in table[part].items() if "paged" not in key}

    change(coefficients_path(project, NAME), older)
    # Points of what it lacks are named, and nothing else.
    assert all("has no coefficients" in problem for problem in said(project))


def first(moments: list[Table]) -> Table:
    return moments[0]


DAMAGES: dict[str, tuple[Damage, str]] = {
    "a key missing": (lambda t: t.pop("terms"), "terms: "),
    "a key too many": (lambda t: t.update(extra=1), "extra: there is no such key"),
    "a text for a number": (lambda t: t["weights"].update(fp32=["0", 1]), "weights.fp32.0: "),
    "less than nothing": (lambda t: t["weights"].update(fp32=[0, -1]), "greater than or equal to 0"),
    "no weights": (lambda t: t["weights"].update(fp32=[]), "weights has no 'fp32', which the setup"),
    "a term that there is not": (lambda t: t["weights"].update(fp32=[99, 1]), "weights.fp32 is no sum of"),
    "half a pair": (
        lambda t: first(t["training"]["fp32 sdpa"]).update(activations=[0]),
        "training.fp32 sdpa.activations is no sum of",
    ),
    "a power missing": (lambda t: t["terms"][0].pop(), "another number of powers than there are variables"),
    "a variable that nobody chooses": (
        lambda t: t.update(variables=["batch", "sequence", "chunk", "magic"]),
        "variables are batch, sequence, chunk, magic",
    ),
    "no setup": (
        lambda t: t["training"].update({"fp8 sdpa": []}),
        "training has 'fp8 sdpa', which is no setup",
    ),
    "no moment": (lambda t: t["training"].update({"fp32 sdpa": []}), "does not end with the one step"),
    "a setup missing": (
        lambda t: t["training"].pop("fp32 sdpa accumulation"),
        "training has no 'fp32 sdpa accumulation', which the setup 'fp32 sdpa' needs",
    ),
    "an optimizer missing": (lambda t: t["optimizers"].pop("bf16 sgd"), "optimizers has no 'bf16 sgd'"),
    "an optimizer of no weights": (
        lambda t: t["optimizers"].update(sgd=t["optimizers"]["fp32 sgd"]),
        "optimizers has 'sgd', which is no setup",
    ),
    "no training": (lambda t: t.update(training={}), "training has no setup in fp32"),
    "nothing of a prompt": (
        lambda t: t["inference"]["fp32 sdpa"].update(prefill=[]),
        "inference.fp32 sdpa.prefill: List should have at least 1 item",
    ),
    "no head to chunk by": (lambda t: t.pop("head"), "of which the file does not say how large they are"),
    "nothing of how completions are generated": (
        lambda t: t["generation"].pop("fp32 sdpa"),
        "generation has nothing of what the setup 'fp32 sdpa grpo' begins with",
    ),
    "no completion": (
        lambda t: [row.pop(t["variables"].index("completion")) for row in (*t["terms"], t["variables"])],
        "learns from completions, which are no variable of the file",
    ),
    "too many terms": (
        lambda t: t.update(terms=t["terms"][:1] * 1001),
        "terms: List should have at most 1000",
    ),
    "no positions": (lambda t: t.update(positions=0), "positions: "),
}


@pytest.mark.parametrize("damage", DAMAGES)
def test_a_damaged_file_is_named_by_the_check_and_by_the_site(project: Project, damage: str) -> None:
    apply, reason = DAMAGES[damage]
    path = coefficients_path(project, NAME)
    change(path, apply)
    (line,) = said(project)
    assert line.startswith(f"snippets/coefficients/models/{NAME}.json:1: ")
    assert reason in line
    assert line.endswith(f"; run `benchbook coefficients {NAME}`")
    with pytest.raises(BenchbookError) as caught:
        coefficient_files(project)
    assert str(caught.value) == line
    # And derived anew.
    assert stale_coefficients(project, NAME) == "not of the form that such files have"


@pytest.mark.parametrize("text", ["{", "[]", '{"schema": 3, "schema": 3}', '{"schema": NaN}'])
def test_a_file_that_is_no_table_is_named(project: Project, text: str) -> None:
    write(coefficients_path(project, NAME), text)
    (line,) = said(project)
    assert line.endswith(f"; run `benchbook coefficients {NAME}`")


UNREADABLE = {
    "deep": b"[" * 100_000,
    "endless number": b'{"a": ' + b"9" * 5000 + b"}",
    "no text": b'{"a": "\xff"}',
    "cut off": b'{"a": ',
    "no table": b"[]",
    "of millions of values": b"[" + b"[]," * 1_000_000 + b"[]]",
    "not there": None,
}


@pytest.mark.parametrize("damage", UNREADABLE)
def test_a_configuration_that_cannot_be_read_is_named(project: Project, damage: str) -> None:
    path, content = project.snippets / f"models/{NAME}.json", UNREADABLE[damage]
    path.unlink() if content is None else path.write_bytes(content)
    (line,) = said(project)
    assert line.startswith(f"snippets/models/{NAME}.json:1: ")
    assert line.endswith("; copy it from its model again, or take the model out of models.toml")


@pytest.mark.parametrize("content", [b"[" + b"[]," * 1_000_000 + b"[]]", b" " * (8 << 20) + b"{}"])
def test_a_file_of_more_than_any_coefficients_is_not_parsed(project: Project, content: bytes) -> None:
    coefficients_path(project, NAME).write_bytes(content)
    (line,) = said(project)
    assert "cannot be read (it " in line
    assert line.endswith(f"; run `benchbook coefficients {NAME}`")


@pytest.mark.parametrize("place", ["models/zz.json", "families/zz.json", "zz.json", "models/gpt2.json.bak"])
def test_a_file_of_no_model_is_refused_and_does_not_reach_the_site(project: Project, place: str) -> None:
    write(project.snippets / "coefficients" / place, "{")
    fix = "remove it, or list its model in snippets/models/models.toml"
    assert said(project) == [
        f"snippets/coefficients/{place}:1: is of no model and of no family; {fix}",
    ]
    assert list(coefficient_files(project)) == [f"models/{NAME}.json"]


@pytest.mark.parametrize("kind", ["fp32", "bf16", "fp32 lora", "bf16 lora"])
def test_weights_are_those_of_as_many_parameters_as_were_published(project: Project, kind: str) -> None:
    def smaller(table: Table) -> None:
        table["weights"][kind] = scaled(table["weights"][kind], 0.1)

    change(coefficients_path(project, NAME), smaller)
    width = 4 if "fp32" in kind else 2
    line = f"weights.{kind} is {12443980.8 * width:.0f} B, and 124439808 parameters take {124439808 * width}"
    assert line in said(project)[0]


def test_coefficients_that_contradict_a_recorded_point_are_named(project: Project) -> None:
    change(coefficients_path(project, NAME), fewer_activations())
    (line,) = said(project)
    assert f"the coefficients of {NAME} are " in line
    assert "off a prediction in points.json; run" in line


def add_family(project: Project, family: str, models: int = 1) -> tuple[str, ...]:
    """Give the checkout a family and so many models of its making; their names."""
    names = MADE_ALIKE[family][:models]
    add_model(project, family, *names)
    return names


def add_model(project: Project, family: str, *names: str) -> None:
    listed = project.snippets / "models/models.toml"
    text = listed.read_text("utf-8")
    copied = [f"coefficients/families/{family}.json"]
    for name in names:
        copied += [f"models/{name}.json", f"coefficients/models/{name}.json"]
        text += f'["{name}"]\ntitle = "{name}"\nkind = "decoder"\n'
    for one in copied:
        write(project.snippets / one, (HANDBOOK.snippets / one).read_text("utf-8"))
    write(listed, text)
    assert said(project) == []


def of_one_kind(part: str, key: str) -> Damage:
    """All that is held in one kind of setup is a third of what it was."""
    return lambda table: table[part].update({key: scaled(table[part][key], 0.3)})


ODD_TRAINED = {
    "training fp32 sdpa grpo accumulation": "holds gradients of",
    "training bf16 lora sdpa checkpointing": "holds gradients of",
    "optimizers fp32 adamw_loop": "keeps states of",
    "optimizers bf16 adamw_8bit": "keeps states of",
    "optimizers lora sgd_momentum": "keeps states of",
}


@pytest.mark.parametrize("where", ODD_TRAINED)
def test_gradients_and_states_are_those_of_what_is_trained_in_kinds_that_no_point_is_of(
    project: Project, where: str
) -> None:
    part, key = where.split(" ", 1)
    assert load_points(project)
    change(coefficients_path(project, NAME), of_one_kind(part, key))
    assert any(f"gpt2.json:1: {part} {key!r} {ODD_TRAINED[where]}" in line for line in said(project))


MODEL = f'[{NAME}]\ntitle = "GPT-2"\nkind = "decoder"\nparameters = 124_439_808\n'


@pytest.mark.parametrize(
    ("config", "kind"),
    [
        ({}, "encoder"),
        ({"architectures": ["BertForSequenceClassification"]}, "decoder"),
        ({"architectures": ["MixtralForCausalLM"], "num_local_experts": 8}, "decoder"),
        ({"is_encoder_decoder": True}, "decoder"),
    ],
)
def test_a_model_is_of_the_kind_that_its_configuration_tells(
    project: Project, config: Table, kind: str
) -> None:
    change(project.snippets / f"models/{NAME}.json", lambda table: table.update(config))
    write(project.snippets / "models/models.toml", MODEL.replace("decoder", kind))
    (line,) = (one for one in said(project) if "stale" not in one)
    assert line.startswith(f"snippets/models/models.toml:3: `kind` is {kind}, and by {NAME}.json it is ")


@pytest.mark.parametrize(
    ("words", "dtype"),
    [
        ('\'"torch_dtype": "bfloat16"\'', "float32"),
        ('\'"torch_dtype": "bfloat16"\'', "float16"),
        ('"ships fp16, or F32"', "float16"),
        ('"548M model.safetensors"', "float16"),
        ('"as published"', "float32"),
    ],
)
def test_a_model_has_the_number_format_that_the_words_of_its_source_say(
    project: Project, words: str, dtype: str
) -> None:
    write(project.snippets / "models/models.toml", f'{MODEL}dtype = "{dtype}"\ndtype_words = {words}\n')
    (line,) = said(project)
    assert line.startswith(
        f"snippets/models/models.toml:5: `dtype` is {dtype}, which its `dtype_words` do not say"
    )


@pytest.mark.parametrize("words", ["'torch_dtype: float32'", "\"{ 'F32' => 137022720 }\"", "'475M a.bin'"])
def test_a_number_format_is_told_by_its_name_or_by_the_size_of_the_file(project: Project, words: str) -> None:
    write(project.snippets / "models/models.toml", f'{MODEL}dtype = "float32"\ndtype_words = {words}\n')
    assert said(project) == []


def smaller_units(table: Table) -> None:
    table["units"] = scaled(table["units"], 0.1)


def test_what_several_gpus_divide_are_all_parameters_of_a_model(project: Project) -> None:
    change(coefficients_path(project, NAME), smaller_units)
    (line,) = said(project)
    what = "units.root and 12 times units.layer are 12443981 parameters, and the weights 124439808"
    assert line.startswith(f"snippets/coefficients/models/{NAME}.json:1: {what}; ")


def test_what_several_gpus_divide_of_a_family_is_what_a_model_of_its_making_does(project: Project) -> None:
    (name,) = add_family(project, "decoder")
    change(coefficients_path(project, "decoder"), smaller_units)
    (line,) = said(project)
    assert line.split(f" off those of {name} at ")[1].startswith("'fp32 sdpa', divided among 8 GPUs")


@pytest.mark.parametrize(
    ("damage", "where"),
    [
        (fewer_activations("bf16 sdpa dpo"), "'bf16 sdpa dpo', of large batches"),
        (of_one_kind("evaluation", "fp32 eager"), "evaluation 'fp32 eager'"),
        (of_one_kind("generation", "bf16 lora sdpa"), "generation 'bf16 lora sdpa'"),
        (of_one_kind("optimizers", "fp32 adafactor"), "optimizers 'fp32 adafactor'"),
    ],
)
def test_a_model_is_held_to_its_family_in_kinds_that_no_point_is_of(
    project: Project, damage: Damage, where: str
) -> None:
    family = "decoder"
    (name,) = add_family(project, family)
    change(coefficients_path(project, name), damage)
    (line,) = said(project)
    assert f"the coefficients of {family} are " in line
    assert line.split(f" off those of {name} at ")[1].startswith(where)


def test_a_model_that_holds_nothing_is_infinitely_far_off(project: Project) -> None:
    (name,) = add_family(project, "decoder")
    parts = ("units", "training", "inference", "evaluation", "generation", "optimizers", "weights")
    change(
        coefficients_path(project, name),
        lambda table: table.update({part: scaled(table[part], 0) for part in parts}),
    )
    assert any("the coefficients of decoder are inf% off" in line for line in said(project))


def test_a_model_that_is_akin_to_a_family_is_not_far_off_it(project: Project) -> None:
    family = "decoder"
    name = AKIN[family][0]
    add_model(project, family, name)
    change(coefficients_path(project, name), fewer_activations("bf16 sdpa dpo"))
    (line,) = said(project)
    assert f"{name}.json:1: the coefficients of {name} are " in line
    assert f" off those of {family}, its kin, at 'bf16 sdpa dpo'" in line


@pytest.mark.parametrize("part", ["weights", "training", "optimizers"])
def test_a_family_that_is_not_as_a_model_of_its_making_is_named(project: Project, part: str) -> None:
    family = "decoder"
    (name,) = add_family(project, family)

    def smaller(table: Table) -> None:
        table[part] = scaled(copy.deepcopy(table[part]), 0.1)

    change(coefficients_path(project, family), smaller)
    (line,) = said(project)
    assert f"decoder.json:1: the coefficients of {family} are " in line
    assert f" off those of {name} at " in line
    assert line.endswith(f"; run `benchbook coefficients {family}`, or of {name}")


def test_a_family_that_is_as_one_model_of_its_making_alone_is_named(project: Project) -> None:
    family = "decoder"
    names = add_family(project, family, models=2)

    # As if the family were right at the dimensions of the first alone.
    change(coefficients_path(project, names[1]), fewer_activations())
    (line,) = said(project)
    assert f"decoder.json:1: the coefficients of {family} are " in line
    assert f" off those of {names[1]} at " in line


DIMENSIONS: dict[str, tuple[Damage, str]] = {
    "none": (lambda t: t.pop("vocab_size"), "has no `vocab_size`"),
    "neither of two": (lambda t: t.pop("hidden_size"), "has no `hidden_size` or `n_embd`"),
    "nothing": (lambda t: t.update(num_attention_heads=0), "`num_attention_heads` is 0, and not"),
    "a text": (lambda t: t.update(hidden_size="1024"), "`hidden_size` is '1024', and not a whole number"),
    "a list": (lambda t: t.update(num_hidden_layers=[]), "`num_hidden_layers` is [], and not"),
    "beyond a float": (lambda t: t.update(hidden_size=10**400), "`hidden_size` is 1000000"),
    "less than one each": (lambda t: t.update(num_attention_heads=4097), "`head_dim` is 0, and not"),
}


@pytest.mark.parametrize("damage", DIMENSIONS)
def test_a_configuration_without_the_dimensions_of_its_family_is_named(project: Project, damage: str) -> None:
    (name,) = add_family(project, "decoder")
    apply, reason = DIMENSIONS[damage]
    change(project.snippets / f"models/{name}.json", apply)
    # As a derivation from it would say.
    digest = config_digest(json.loads((project.snippets / f"models/{name}.json").read_text("utf-8")))
    change(coefficients_path(project, name), lambda table: table.update(configuration=digest))
    (line,) = said(project)
    assert line.startswith(f"snippets/models/{name}.json:1: {reason}")
    assert line.endswith("; copy it from its model again, or take the model out of models.toml")


POINTS: dict[str, tuple[Damage, str]] = {
    "nothing requested": (
        lambda t: t["points"][0].update(requested=0),
        "points.0.requested: Input should be",
    ),
    "nothing allocated": (
        lambda t: t["points"][0].update(allocated=0),
        "points.0.allocated: Input should be",
    ),
    "no sample": (lambda t: t["points"][0]["setup"].update(batch=0), "points.0.setup.batch: Input should be"),
    "no optimizer": (
        lambda t: t["points"][0]["setup"].update(optimizer="magic"),
        "points.0.setup.optimizer: Input should be",
    ),
    "a completion without a prompt": (
        lambda t: t["points"][0]["setup"].update(objective="grpo", sequence=8, completion=8),
        "completion is 8 of 8 tokens, and no prompt",
    ),
    "too many points": (
        lambda t: t.update(points=t["points"][:1] * 1001),
        "points: Tuple should have at most 1000 items",
    ),
    "no points": (lambda t: t.update(points=[]), "the file: it holds no points"),
    "a key too many": (lambda t: t.update(extra=1), "extra: there is no such key"),
    "no such model": (
        lambda t: t["points"][0].update(model="zz"),
        "points.0 is of zz, which has no coefficients",
    ),
    "no such setup": (
        lambda t: t["points"][0]["setup"].update(mode="inference", precision="bf16_autocast"),
        f"of which {NAME} has no coefficients",
    ),
}


@pytest.mark.parametrize("damage", POINTS)
def test_damaged_points_are_named(project: Project, damage: str) -> None:
    apply, reason = POINTS[damage]
    change(points_path(project), apply)
    (line,) = said(project)
    assert line.startswith("snippets/coefficients/points.json:1: ")
    assert reason in line
    assert line.endswith("; run `benchbook coefficients --points 200`")


def test_points_are_read_as_they_were_written() -> None:
    points = load_points(HANDBOOK)
    assert points is not None
    assert len(points.points) == len(json.loads(points_path(HANDBOOK).read_text("utf-8"))["points"])
