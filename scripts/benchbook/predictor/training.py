"""The training loop whose memory is predicted, and its optimizers; it runs on real devices too."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from typing import Any

import torch
from torch import nn
from torch._subclasses.fake_tensor import is_fake
from transformers.optimization import Adafactor

from benchbook.predictor.adapters import add_adapters, add_peft
from benchbook.predictor.attribution import EMPTIED
from benchbook.predictor.autocast import Scaler
from benchbook.predictor.inference import Mark, generate
from benchbook.predictor.objectives import loss_of
from benchbook.predictor.workload import Inference, Optimizer, Training

RATE = 1e-5


class EightBitAdamW(torch.optim.Optimizer):
    """The states of bitsandbytes' AdamW8bit, whose kernels run on a GPU only, and need no temporaries.

    Two bytes per value and two scales of fp32 per block of 256; smaller parameters keep two states of fp32
    (Dettmers et al. 2021, arXiv 2110.02861; bitsandbytes `optim/optimizer.py`: `Optimizer2State.init_state`,
    `min_8bit_size` 4096). Where it is paged, those of large parameters lie in memory that the driver moves
    between GPU and machine, which torch's allocator does not know (`get_state_buffer`).

    Parameters:
        parameters: In groups.
        paged: Whether it is.
        whole: Of these parameters, those that keep states of fp32 whatever their size.
    """

    BLOCK = 256
    SMALLEST = 4096
    MAP = 256
    PAGED = 100_000

    def __init__(
        self,
        parameters: Iterable[dict[str, Any]],
        paged: bool = False,
        whole: Iterable[torch.Tensor] = (),
    ) -> None:
        super().__init__(parameters, {})
        self._paged = paged
        self._whole = {id(parameter) for parameter in whole}
        self._maps: list[torch.Tensor] = []

    @torch.no_grad()
    def step(self, closure: Any = None) -> Any:
        """Create what is missing of the states; values are of no interest."""
        for group in self.param_groups:
            for parameter in group["params"]:
                if parameter.grad is not None and not self.state[parameter]:
                    self.state[parameter].update(self._states(parameter))

    def _states(self, parameter: torch.Tensor) -> dict[str, torch.Tensor]:
        device = parameter.device
        away = self._paged and parameter.numel() >= self.PAGED
        if parameter.numel() < self.SMALLEST or id(parameter) in self._whole:
            names = () if away else ("state1", "state2")
            return {name: torch.zeros_like(parameter, dtype=torch.float32) for name in names}
        if not self._maps:
            self._maps = [torch.zeros(self.MAP, device=device) for _ in range(2)]
        blocks = -(-parameter.numel() // self.BLOCK)
        states = {}
        for number, quantization_map in enumerate(self._maps, start=1):
            if not away:
                states[f"state{number}"] = torch.zeros_like(parameter, dtype=torch.uint8)
            states[f"qmap{number}"] = quantization_map
            states[f"absmax{number}"] = torch.zeros(blocks, device=device)
        return states


def make_optimizer(
    name: Optimizer, parameters: list[nn.Parameter], model: nn.Module
) -> torch.optim.Optimizer:
    """A new optimizer of these parameters of a model, as transformers' Trainer makes it.

    `fused`, `foreach` and `loop` differ in their temporaries: torch's AdamW over lists holds as much as the
    gradients beside them, the loop as much as one parameter, the fused kernel nothing. In 8 bits, the states
    of embeddings stay in 32 (`Trainer.create_optimizer`, transformers 5.23).
    """
    embeddings = [module.weight for module in model.modules() if isinstance(module, nn.Embedding)]
    groups: list[dict[str, Any]] = [{"params": group} for group in by_mesh(parameters)]
    makers: dict[str, Callable[[], torch.optim.Optimizer]] = {
        "adamw_fused": lambda: torch.optim.AdamW(groups, lr=RATE, fused=True),
        "adamw_foreach": lambda: torch.optim.AdamW(groups, lr=RATE, foreach=True),
        "adamw_loop": lambda: torch.optim.AdamW(groups, lr=RATE, foreach=False, fused=False),
        "sgd": lambda: torch.optim.SGD(groups, lr=RATE),
        "sgd_momentum": lambda: torch.optim.SGD(groups, lr=RATE, momentum=0.9),
        "adafactor": lambda: Adafactor(
            groups, lr=RATE, relative_step=False, scale_parameter=False, warmup_init=False
        ),
        "adamw_8bit": lambda: EightBitAdamW(groups, whole=embeddings),
        "paged_adamw_8bit": lambda: EightBitAdamW(groups, paged=True, whole=embeddings),
    }
    return makers[name]()


def by_mesh(parameters: list[nn.Parameter]) -> list[list[nn.Parameter]]:
    """Parameters on one mesh of ranks together, and those on none: no operation takes both.

    As transformers' Trainer groups them (`create_optimizer`).
    """
    groups: dict[Any, list[nn.Parameter]] = {}
    for parameter in parameters:
        groups.setdefault(getattr(parameter, "device_mesh", None), []).append(parameter)
    return list(groups.values())


# The first step creates the optimizer's states, the second runs with them, the third repeats it.
STEPS = 3
MAXIMUM_NORM = 1.0


def prepare(model: nn.Module, workload: Training) -> nn.Module:
    """Put the model into the state in which it is trained; gives what is called in its place."""
    model.train()
    called = model
    if workload.lora is not None:
        add_adapters(model, workload.lora)
    if workload.adapters is not None:
        called = add_peft(model, workload.adapters)
    if workload.checkpointing:
        enable: Any = model.activation_checkpointing_enable
        enable(activation_checkpointing_kwargs={"use_reentrant": False})
    return called


def train(
    model: nn.Module,
    optimizer: torch.optim.Optimizer,
    draw: Callable[[Training], Mapping[str, torch.Tensor]],
    workload: Training,
    device: str,
    mark: Mark,
    steps: int = STEPS,
    reference: nn.Module | None = None,
    before_step: Callable[[], None] = lambda: None,
) -> None:
    """Train for some steps, then evaluate a batch if the workload asks for it.

    Parameters:
        model: Prepared, on the device.
        optimizer: Of its trainable parameters.
        draw: Gives a batch for a workload, on the device.
        workload: How to train.
        device: Its type.
        mark: Is told the name of each moment as it begins.
        steps: Steps of the optimizer.
        reference: What `dpo` compares with, on the device; None: the model without its adapters.
        before_step: Is called as each step begins: with `grpo`, to generate what it learns from.
    """
    parameters = [parameter for parameter in model.parameters() if parameter.requires_grad]
    scaler = Scaler(device) if workload.precision == "fp16_autocast" else None
    for step in range(steps):
        if workload.emptied and step == steps - 1:
            mark(EMPTIED)
        before_step()
        for _ in range(workload.accumulation):
            mark("forward")
            batch = draw(workload)
            loss = loss_of(model, batch, workload, device, reference)
            if workload.accumulation > 1:
                loss = loss / workload.accumulation
            if scaler is not None:
                loss = scaler.scale(loss)
            mark("backward")
            loss.backward()
            del loss, batch
        if scaler is not None:
            mark("unscale")
            scaler.unscale(parameters)
        if workload.clipping:
            mark("clip")
            clip(parameters)
        mark("step")
        optimizer.step()
        mark("zero_grad")
        optimizer.zero_grad(set_to_none=not workload.keep_gradients)
    if workload.evaluation is not None:
        mark("evaluation")
        evaluate_batch(model, draw, workload, workload.evaluation, device, reference)


def evaluate_batch(
    model: nn.Module,
    draw: Callable[[Training], Mapping[str, torch.Tensor]],
    workload: Training,
    samples: int,
    device: str,
    reference: nn.Module | None = None,
) -> None:
    """The loss of a batch of so many samples, without gradients, as Trainer evaluates without metrics."""
    asked = replace(workload, batch=samples)
    model.eval()
    with torch.no_grad():
        loss_of(model, draw(asked), asked, device, reference)
    model.train()


def generate_completions(
    model: nn.Module,
    workload: Training,
    device: str,
    mark: Mark,
    seen_cache: Callable[[Any], None] = lambda cache: None,
) -> None:
    """With `grpo`, generate the completions of all passes of a step at once (trl `steps_per_generation`).

    Parameters:
        model: Prepared, on the device.
        workload: How to train; without a completion, nothing is generated.
        device: Its type.
        mark: Is told the name of each moment as it begins.
        seen_cache: Is given the cache of keys and values after each pass.
    """
    if workload.completion is None:
        return
    asked = Inference(
        workload.batch * workload.accumulation,
        workload.sequence - workload.completion,
        workload.completion,
        workload.precision,
        workload.attention,
    )
    # Checkpointing, which forbids a cache, is for training only.
    model.eval()
    generate(model, asked, device, mark, seen_cache, skipping=is_fake(next(model.parameters())))
    model.train()


def clip(parameters: list[nn.Parameter]) -> None:
    """Clip the norm of all gradients, over several meshes as the Trainer does (`_mixed_mesh_grad_norm`)."""
    groups = by_mesh(parameters)
    if len(groups) == 1:
        torch.nn.utils.clip_grad_norm_(groups[0], MAXIMUM_NORM)
        return
    norms: list[Any] = [
        torch.nn.utils.get_total_norm([each.grad for each in group if each.grad is not None])
        for group in groups
    ]
    whole = [norm.full_tensor() if hasattr(norm, "full_tensor") else norm for norm in norms]
    total = torch.linalg.vector_norm(torch.stack(whole))
    for group in groups:
        torch.nn.utils.clip_grads_with_norm_(group, MAXIMUM_NORM, total)
