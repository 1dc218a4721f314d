"""What torch's CPU allocator really holds at most while a model trains or generates, by the profiler's events."""

import gc
import multiprocessing

import torch
import transformers
from torch.profiler import ProfilerActivity, profile, record_function

from benchbook.predictor.inference import generate
from benchbook.predictor.models import draw_batch, read_config, ready_for_training
from benchbook.predictor.training import generate_completions, make_optimizer, prepare, train
from benchbook.predictor.workload import Training

WORK = "work"


def real_peaks(cases):
    """Bytes of each (configuration, workload), every one in a process of its own that only imported before."""
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(["benchbook.predictor", "transformers.models.auto.modeling_auto"])
    with context.Pool(1, maxtasksperchild=1) as pool:
        return pool.starmap(real_peak, cases, chunksize=1)


def real_peak(config, workload):
    """Run it, and add the profiler's memory events up; what building the model took beside it is left out."""
    transformers.logging.set_verbosity_error()
    torch.set_num_threads(1)
    gc.collect()
    with profile(activities=[ProfilerActivity.CPU], profile_memory=True) as seen:
        model = build(config, workload)
        reference = build(config, workload) if needs_reference(workload) else None
        with record_function(WORK):
            work(model, workload, reference)
    events = seen.profiler.kineto_results.events()
    start = next(event.start_ns() for event in events if event.name() == WORK)
    cpu = torch.autograd.DeviceType.CPU
    changes = sorted(
        (event.start_ns(), event.nbytes())
        for event in events
        if event.name() == "[memory]" and event.device_type() == cpu
    )
    held = most = 0
    for moment, change in changes:
        held += change
        most = max(most, held if moment >= start else 0)
    return most


def build(config, workload):
    """The model with values, as the workload needs it."""
    settings = read_config(config)
    if isinstance(workload, Training):
        ready_for_training(settings, workload)
    model = getattr(transformers, settings.architectures[0])._from_config(
        settings,
        dtype=torch.bfloat16 if workload.precision == "bf16" else torch.float32,
        attn_implementation=workload.attention,
    )
    return model.eval()


def needs_reference(workload):
    """Whether a copy of the model is compared with it."""
    return isinstance(workload, Training) and workload.objective == "dpo" and workload.lora is None


def work(model, workload, reference=None):
    """What the predictor traces, on real tensors."""
    if not isinstance(workload, Training):
        generate(model, workload, "cpu", lambda moment: None, lambda cache: None, skipping=False)
        return
    called = prepare(model, workload)
    trained = [parameter for parameter in called.parameters() if parameter.requires_grad]
    optimizer = make_optimizer(workload.optimizer, trained, model)
    train(
        called,
        optimizer,
        lambda asked: draw_batch(model, asked, "cpu"),
        workload,
        "cpu",
        lambda moment: None,
        reference=reference,
        before_step=lambda: generate_completions(called, workload, "cpu", lambda moment: None),
    )
