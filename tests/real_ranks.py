"""What torch's CPU allocator really holds in each of two ranks that train a model together over gloo."""

import bisect
import multiprocessing
import os
import tempfile
from pathlib import Path

import torch
import torch.distributed as dist
import transformers
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import MixedPrecisionPolicy, fully_shard
from torch.nn.parallel import DistributedDataParallel
from torch.profiler import ProfilerActivity, profile, record_function
from transformers.distributed import DistributedConfig

from benchbook.predictor.models import draw_batch, read_config, ready_for_training
from benchbook.predictor.optimizers import make_optimizer
from benchbook.predictor.training import prepare, train

RANKS = 2
STEPS = 4
MARK = "mark: "
PATIENCE = 120


def real_rank_peaks(cases):
    """Bytes of each (configuration, workload, sharding), every rank in a process of its own."""
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(["benchbook.predictor", "transformers.models.auto.modeling_auto"])
    return [_peak_of(context, case) for case in cases]


def _peak_of(context, case):
    with tempfile.TemporaryDirectory() as folder:
        ends = [context.Pipe(duplex=False) for _ in range(RANKS)]
        ranks = [
            context.Process(target=_be_rank, args=(rank, folder, case, sender), daemon=True)
            for rank, (_, sender) in enumerate(ends)
        ]
        for rank in ranks:
            rank.start()
        try:
            peaks = []
            for rank, (receiver, sender) in zip(ranks, ends, strict=True):
                # Without this copy, a rank that dies ends the wait for it.
                sender.close()
                assert receiver.poll(PATIENCE), f"{rank.name} says nothing"
                peaks.extend(receiver.recv())
            return min(peaks)
        finally:
            for rank in ranks:
                rank.kill()
                rank.join()


def _be_rank(rank, folder, case, sender):
    os.environ.update(GLOO_SOCKET_IFNAME="lo", RANK=str(rank), LOCAL_RANK=str(rank), WORLD_SIZE=str(RANKS))
    transformers.logging.set_verbosity_error()
    transformers.logging.disable_progress_bar()
    torch.set_num_threads(1)
    dist.init_process_group(
        "gloo", store=dist.FileStore(f"{folder}/store", RANKS), rank=rank, world_size=RANKS
    )
    with profile(activities=[ProfilerActivity.CPU], profile_memory=True) as seen:
        _train(rank, Path(folder), *case)
    sender.send(_steady_peaks(seen.profiler.kineto_results.events()))
    dist.barrier()


def _train(rank, folder, config, workload, sharding):
    settings = read_config(config)
    ready_for_training(settings, workload)
    architecture = getattr(transformers, settings.architectures[0])
    attention = {"attn_implementation": "eager" if workload.attention == "eager" else "sdpa"}
    if sharding.kind == "tensor":
        if rank == 0:
            architecture._from_config(settings).save_pretrained(folder)
        dist.barrier()
        model = architecture.from_pretrained(
            folder, distributed_config=DistributedConfig(tp_size=RANKS), **attention
        )
        _leave_the_file(model)
    else:
        model = architecture._from_config(settings, **attention)
    prepare(model, workload)
    called = _divided(model, sharding)
    trained = list(model.parameters())
    optimizer = make_optimizer(workload.optimizer, trained)
    train(called, optimizer, lambda: draw_batch(model, workload, "cpu"), workload, "cpu", _mark, STEPS)


def _divided(model, sharding):
    mesh = init_device_mesh("cpu", (RANKS,))
    if sharding.kind == "ddp":
        return DistributedDataParallel(model, gradient_as_bucket_view=sharding.gradient_as_bucket_view)
    if sharding.kind == "fsdp2":
        reduced = MixedPrecisionPolicy(param_dtype=torch.bfloat16, reduce_dtype=torch.float32)
        policy = reduced if sharding.mixed_precision else MixedPrecisionPolicy()
        layers = model.bert.encoder.layer if hasattr(model, "bert") else model.model.layers
        for part in (*layers, model):
            fully_shard(
                part, mesh=mesh, reshard_after_forward=sharding.reshard_after_forward, mp_policy=policy
            )
    return model


def _leave_the_file(model):
    """On a CPU, what is loaded remains a part of the file in memory, and keeps all of it there."""
    for parameter in model.parameters():
        if hasattr(parameter, "_local_tensor"):
            parameter._local_tensor = parameter._local_tensor.detach().clone()
        else:
            parameter.data = parameter.data.clone()


def _mark(moment):
    with record_function(MARK + moment):
        pass


def _steady_peaks(events):
    """The most that each step but the first holds.

    Now and then a worker thread of gloo is the last to hold a copy, and the profiler does not learn that it
    was freed. So the least of several steps and ranks is right.
    """
    changes = sorted((event.start_ns(), event.nbytes()) for event in events if event.name() == "[memory]")
    ends = sorted(event.start_ns() for event in events if event.name() == f"{MARK}zero_grad")
    peaks = [0] * (len(ends) + 1)
    held = 0
    for moment, change in changes:
        held += change
        step = bisect.bisect(ends, moment)
        peaks[step] = max(peaks[step], held)
    return peaks[1:-1]
