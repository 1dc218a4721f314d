"""The commands that predict memory: for one setup, and for all that is declared."""

from __future__ import annotations

from typing import Annotated

import typer

from benchbook.content.problems import printable
from benchbook.content.project import find_project
from benchbook.predictor.workload import (
    Attention,
    Cache,
    Device,
    Inference,
    Kind,
    Lora,
    Objective,
    Optimizer,
    Precision,
    Sharding,
    Training,
    UnpredictableError,
    Workload,
)

TRAINS = "training"
GENERATES = "with --inference"
SHARDS = "with --sharding"


def predict_memory(
    model: Annotated[
        str, typer.Argument(metavar="MODEL", help="a config.json, or a name in snippets/models")
    ],
    batch: Annotated[int, typer.Option(min=1, help="samples at once")] = 1,
    sequence: Annotated[int, typer.Option(min=1, help="tokens of each, or of each prompt")] = 512,
    precision: Annotated[Precision | None, typer.Option(help="fp32; bf16 with --inference")] = None,
    attention: Annotated[Attention, typer.Option(help="sdpa: what the device would choose")] = "sdpa",
    optimizer: Annotated[Optimizer, typer.Option(help=TRAINS)] = "adamw_fused",
    checkpointing: Annotated[bool, typer.Option("--checkpointing", help=TRAINS)] = False,
    accumulation: Annotated[int, typer.Option(min=1, help=f"{TRAINS}: batches per step")] = 1,
    clipping: Annotated[bool, typer.Option(help=f"{TRAINS}: of the gradients' norm")] = True,
    keep_gradients: Annotated[
        bool, typer.Option("--keep-gradients", help=f"{TRAINS}: zero them instead of freeing them")
    ] = False,
    lora_rank: Annotated[int | None, typer.Option(min=1, help=f"{TRAINS}: adapters only")] = None,
    four_bit: Annotated[
        bool, typer.Option("--four-bit", help="with --lora-rank: the model in NF4, as QLoRA has it")
    ] = False,
    objective: Annotated[
        Objective, typer.Option(help=f"{TRAINS}: dpo counts pairs, grpo generates first")
    ] = "supervised",
    completion: Annotated[int | None, typer.Option(min=1, help="with grpo: the tokens it generates")] = None,
    chunk: Annotated[
        int | None, typer.Option(min=1, help=f"{TRAINS}: tokens whose logits are made at once")
    ] = None,
    evaluation: Annotated[
        int | None, typer.Option(min=1, help=f"{TRAINS}: samples of a batch evaluated after it")
    ] = None,
    dropout: Annotated[float | None, typer.Option(min=0, help=f"{TRAINS}: not the configuration's")] = None,
    inference: Annotated[bool, typer.Option("--inference", help="generate instead of training")] = False,
    new_tokens: Annotated[int, typer.Option(min=1, help=GENERATES)] = 1,
    cache: Annotated[Cache, typer.Option(help=f"{GENERATES}: of keys and values")] = "dynamic",
    sharding: Annotated[
        Kind | None, typer.Option(help=f"{TRAINS}: how --ranks divide the model; one of them is predicted")
    ] = None,
    ranks: Annotated[int | None, typer.Option(min=2, help=f"{SHARDS}: GPUs that train together")] = None,
    reshard: Annotated[
        bool, typer.Option(help=f"{SHARDS} fsdp2: free gathered weights after the forward pass")
    ] = True,
    mixed_precision: Annotated[
        bool, typer.Option("--mixed-precision", help=f"{SHARDS} fsdp2: compute in bf16")
    ] = False,
    bucket_view: Annotated[
        bool, typer.Option("--bucket-view", help=f"{SHARDS} ddp: gradients lie in their buckets")
    ] = False,
    device: Annotated[Device, typer.Option(help="a GPU, or torch on a CPU")] = "cuda",
    gpu: Annotated[str | None, typer.Option(metavar="NAME", help="say whether it fits, e.g. H100")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="as JSON, in bytes")] = False,
) -> None:
    """Predict the memory that a model takes in training or generating, without a GPU."""
    trains = checkpointing or keep_gradients or not clipping or accumulation > 1 or optimizer != "adamw_fused"
    given = (lora_rank, dropout, completion, chunk, evaluation)
    if inference and (trains or objective != "supervised" or any(one is not None for one in given)):
        raise typer.BadParameter("--inference goes with none of the options of training")
    if not inference and (new_tokens > 1 or cache != "dynamic"):
        raise typer.BadParameter("--new-tokens and --cache go with --inference")
    if four_bit and lora_rank is None:
        raise typer.BadParameter("--four-bit goes with --lora-rank")
    if inference and sharding is not None:
        raise typer.BadParameter("--sharding goes with training, not with --inference")
    if (sharding is None) != (ranks is None):
        raise typer.BadParameter("--ranks and --sharding go together")
    if sharding is None and (not reshard or mixed_precision or bucket_view):
        raise typer.BadParameter("--no-reshard, --mixed-precision and --bucket-view go with --sharding")
    if gpu is not None and device == "cpu":
        raise typer.BadParameter("--gpu goes with --device cuda")
    workload: Workload
    divided = None
    try:
        if sharding is not None and ranks is not None:
            divided = Sharding(sharding, ranks, reshard, mixed_precision, bucket_view)
        if inference:
            workload = Inference(batch, sequence, new_tokens, precision or "bf16", attention, cache)
        else:
            workload = Training(
                batch,
                sequence,
                precision or "fp32",
                optimizer,
                attention,
                checkpointing,
                accumulation,
                clipping,
                keep_gradients,
                Lora(lora_rank, four_bit=four_bit) if lora_rank is not None else None,
                dropout,
                chunk=chunk,
                objective=objective,
                completion=completion,
                evaluation=evaluation,
            )
    except UnpredictableError as error:
        raise typer.BadParameter(printable(str(error))) from None
    from benchbook.predictor.command import predict_command

    raise typer.Exit(predict_command(model, workload, device, gpu, as_json, divided))


def predictions(
    scripts: Annotated[
        list[str] | None, typer.Argument(metavar="[SCRIPT]...", help="guide/script.py, or a guide")
    ] = None,
    machine: Annotated[str, typer.Option(help="only on this machine, such as nvidia-h200-141gb")] = "",
    everything: Annotated[bool, typer.Option("--all", help="whatever is up to date too")] = False,
) -> None:
    """Predict what each predictions.toml asks, into snippets/predictions; blind ones stay once measured."""
    from benchbook.predictions.making import ask_predictor, make_predictions, stamp_now

    project = find_project()
    for one in make_predictions(
        project, ask_predictor, stamp_now(project), scripts or (), machine, everything
    ):
        reason = f" ({one.reason})" if one.reason else ""
        typer.echo(f"{one.what:9}  {one.machine}  {one.script}  {one.variant}{reason}")


def coefficients(
    models: Annotated[
        list[str] | None, typer.Argument(metavar="[MODEL]...", help="names in snippets/models, or families")
    ] = None,
    everything: Annotated[bool, typer.Option("--all", help="whatever is up to date too")] = False,
    points: Annotated[
        int, typer.Option(min=0, help="predict so many random setups instead, to compare with")
    ] = 0,
    seed: Annotated[int, typer.Option(help="with --points: another one draws other setups")] = 1,
) -> None:
    """Derive coefficients into snippets/coefficients: what is missing or stale, or what is named."""
    from benchbook.calculator.deriving import derive_all, predict_points

    project = find_project()
    lines = predict_points(project, points, seed) if points else derive_all(project, models or (), everything)
    for line in lines:
        typer.echo(line)
