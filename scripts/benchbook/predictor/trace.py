"""Watch every storage of a device be born and die, and where in the work that was."""

from __future__ import annotations

import bisect
import weakref
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import nn
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

from benchbook.predictor.workspaces import Workspaces

ROOT = ""


def _grouped(
    left: torch.Tensor, right: torch.Tensor, offsets: torch.Tensor | None = None, *_: Any, **__: Any
) -> torch.Tensor:
    """The result of a product by groups, of any type: torch's own rule for it admits bf16 alone.

    Its size does not depend on how many rows each group has (`_create_grouped_mm_output_tensor`).
    """
    if left.dim() == 2 and right.dim() == 2:
        assert offsets is not None
        return left.new_empty(offsets.shape[0], left.shape[0], right.shape[1])
    return left.new_empty(*left.shape[: left.dim() - 1], right.shape[-1])


ADD = torch.ops.aten.add.Tensor
SUBSTITUTES: dict[Any, Any] = {torch.ops.aten._grouped_mm.default: _grouped}


@dataclass(slots=True)
class Birth:
    """One storage.

    Parameters:
        size: Bytes asked for.
        op: Whose result it was.
        span: Index of the span of work it was born in.
        layer: Part of the model it belongs to, empty where none is known.
        recomputed: Born in a forward pass that runs again inside the backward pass; numbers the passes.
        category: What it was seen to be afterwards (a weight, a gradient...), empty for the work's own.
        stream: Of the device, on which it was asked for.
    """

    size: int
    op: str
    span: int
    layer: str
    recomputed: int = 0
    category: str = ""
    stream: int = 0


@dataclass(frozen=True)
class Span:
    """Work between two marks.

    Parameters:
        moment: Its name.
        first: Index of its first event.
    """

    moment: str
    first: int


@dataclass
class Events:
    """What a trace saw.

    Parameters:
        births: Storages in the order of their births.
        order: Births as their index, deaths as its complement (`~index`), in order of time.
        spans: Moments of the work in order.
        recomputed: Index of the first event after each forward pass inside a backward pass.
    """

    births: list[Birth] = field(default_factory=list)
    order: list[int] = field(default_factory=list)
    spans: list[Span] = field(default_factory=list)
    recomputed: list[int] = field(default_factory=list)


class Trace(TorchDispatchMode):
    """Sees each operation's results on one device; a storage dies when nothing refers to it any more."""

    def __init__(self, device: str, workspaces: Workspaces | None = None) -> None:
        initialise: Any = super().__init__
        initialise()
        self.events = Events()
        self._device = device
        self._workspaces = workspaces
        self._alive: dict[int, tuple[int, weakref.ref[Any]]] = {}
        self._layers: list[str] = []
        # Storages of the last sum in a backward pass: the first summand's, and its own.
        self._added = (0, 0)
        # Layers by the number of the first autograd node made in them, in the last forward pass.
        self._node_numbers: list[int] = []
        self._node_layers: list[str] = []

    def mark(self, moment: str) -> None:
        """From here on, work belongs to this moment."""
        if moment == "forward":
            self._node_numbers.clear()
            self._node_layers.clear()
        self._layers.clear()
        self.events.spans.append(Span(moment, len(self.events.order)))

    def adopt(self, tensor: torch.Tensor, category: str, layer: str = ROOT) -> None:
        """Count a storage in, if it is new, and say what it is."""
        if tensor.device.type != self._device:
            return
        index = self._see(tensor, "given")
        if index is not None:
            birth = self.events.births[index]
            birth.category = birth.category or category
            birth.layer = layer or birth.layer

    def adopt_module(self, module: nn.Module, layers: Mapping[int, str]) -> None:
        """Count weights in, in the order in which `module.to(device)` copies them.

        Parameters:
            module: With weights on the traced device.
            layers: Layer of each parameter and buffer, by its `id`.
        """
        for child in module.children():
            self.adopt_module(child, layers)
        own = (*module._parameters.values(), *module._buffers.values())
        for tensor in own:
            if tensor is not None:
                self.adopt(tensor, "weights", layers.get(id(tensor), ROOT))

    def watch_layers(self, layers: Iterable[tuple[str, nn.Module]]) -> None:
        """Note in which of these modules work is done."""
        for name, module in layers:
            module.register_forward_pre_hook(self._entering(name))
            module.register_forward_hook(self._leaving, always_call=True)

    def __torch_dispatch__(
        self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        """Run the operation; count in what it made."""
        # Autograd drops a summand before the next operation; later, others may lie where it did.
        self._added = (0, 0)
        substitute = SUBSTITUTES.get(func, func)
        result = substitute(*args, **(kwargs or {}))
        if isinstance(result, torch.Tensor):
            self._see(result, func)
        else:
            for leaf in tree_leaves(result):
                if isinstance(leaf, torch.Tensor):
                    self._see(leaf, func)
        if self._workspaces is not None:
            self._see_workspaces(self._workspaces, func, args)
        if func is ADD and self.events.spans[-1].moment == "backward" and not self._layers:
            self._added = args[0].untyped_storage()._cdata, result.untyped_storage()._cdata
        return result

    def _see_workspaces(self, workspaces: Workspaces, func: Any, args: tuple[Any, ...]) -> None:
        kept = workspaces.kept(func, self.events.spans[-1].moment == "backward")
        if kept:
            self.events.births.append(
                Birth(kept, str(func), len(self.events.spans) - 1, ROOT, 0, "workspaces")
            )
            self.events.order.append(len(self.events.births) - 1)
        passing = [self._be_born(size, func) for size in workspaces.passing(func, args)]
        self.events.order.extend(~index for index in passing)

    def _see(self, tensor: torch.Tensor, op: object) -> int | None:
        if tensor.device.type != self._device:
            return None
        return self._see_storage(tensor.untyped_storage(), op)

    def _see_storage(self, storage: torch.UntypedStorage, op: object) -> int | None:
        key = storage._cdata
        known = self._alive.get(key)
        if known is not None:
            return known[0]
        size = storage.nbytes()
        if size == 0:
            return None
        index = self._be_born(size, op)

        self._alive[key] = index, weakref.ref(storage, lambda _: self._died(key))
        return index

    def _died(self, key: int) -> None:
        """Count a storage out, unless autograd would have added to it in place.

        Where several gradients meet, autograd adds to the first if it holds the last reference, but never to
        a subclass of tensor as fake ones are (`can_accumulate_inplace` in
        `torch/csrc/autograd/input_buffer.cpp`): there it takes a new sum, and drops the first at once.
        """
        index, _ = self._alive.pop(key)
        events = self.events
        first, total = self._added
        if key == first and total in self._alive:
            new, storage = self._alive[total]
            if events.order[-1] == new and events.births[new].size == events.births[index].size:
                events.order.pop()
                events.births.pop()
                self._alive[total] = index, storage
                return
        events.order.append(~index)

    def _be_born(self, size: int, op: object) -> int:
        events = self.events
        index = len(events.births)
        again = self._layers and events.spans[-1].moment == "backward"
        recomputed = len(events.recomputed) + 1 if again else 0
        events.births.append(Birth(size, str(op), len(events.spans) - 1, self._layer(), recomputed))
        events.order.append(index)
        return index

    def _layer(self) -> str:
        if self._layers:
            return self._layers[-1]
        node = torch._C._current_autograd_node()
        if node is None or not self._node_numbers:
            return ROOT
        place = bisect.bisect_right(self._node_numbers, node._sequence_nr()) - 1
        return self._node_layers[place] if place >= 0 else ROOT

    def _entering(self, name: str) -> Any:
        def hook(module: nn.Module, args: object) -> None:
            self._layers.append(name)
            self._note_node(name)

        return hook

    def _leaving(self, module: nn.Module, args: object, result: object) -> None:
        if not self._layers:
            return
        self._layers.pop()
        if self.events.spans[-1].moment == "backward" and not self._layers:
            self.events.recomputed.append(len(self.events.order))
        self._note_node(self._layers[-1] if self._layers else ROOT)

    def _note_node(self, name: str) -> None:
        # Where layers are recomputed, autograd still walks the nodes of the first pass.
        if self.events.spans[-1].moment == "forward":
            self._node_numbers.append(torch._C._autograd._get_sequence_nr())
            self._node_layers.append(name)
