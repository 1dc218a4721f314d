"""What breaks a compiled graph in two, what has it compiled again and again, and the mend of each."""
# /// script
# requires-python = ">=3.11"
# dependencies = ["torch>=2.11", "numpy>=2.0"]
#
# [tool.benchbook]
# needs = ["cpu"]
# timeout = 300
# repeats = 2
# [tool.benchbook.metrics]
# calls = { unit = "count" }
# breaks = { unit = "count", better = "lower" }
# graphs = { unit = "count", better = "lower" }
# [tool.benchbook.matrix]
# fault = ["branch", "item", "print", "lengths", "number", "list", "counter"]
# mended = [false, true]
# ///

# %% parameters
fault = "branch"
mended = False
hidden_size = 64
calls = 8
seed = 42

# %% setup
import logging
import re
from textwrap import fill

import torch
from torch import nn
from torch._dynamo.utils import counters

torch.manual_seed(seed)
layer = nn.Linear(hidden_size, hidden_size)
norms = []
texts = [torch.randn(4, 16 + call, hidden_size) for call in range(calls)]

# %% forward
if fault == "branch" and not mended:
    # region branch_planted
    def forward(x):
        x = layer(x)
        if x.abs().max() > 1:
            x = x / x.abs().max()
        return layer(x)

    # endregion
elif fault == "branch":
    # region branch_mended
    def forward(x):
        x = layer(x)
        x = x / x.abs().max().clamp(min=1)
        return layer(x)

    # endregion
elif fault == "item" and not mended:
    # region item_planted
    def forward(x):
        x = layer(x)
        norms.append(x.norm().item())
        return layer(x)

    # endregion
elif fault == "item":
    # region item_mended
    def forward(x):
        x = layer(x)
        return layer(x), x.norm()  # .item() outside

    # endregion
elif fault == "print" and not mended:
    # region print_planted
    def forward(x):
        x = layer(x)
        print("hidden", x.shape)
        return layer(x)

    # endregion
elif fault == "print":
    # region print_mended
    def forward(x):
        x = layer(x)
        if not torch.compiler.is_compiling():
            print("hidden", x.shape)
        return layer(x)

    # endregion
elif fault == "number":
    # region number
    def forward(x, scale):
        return layer(x) * scale

    # endregion
elif fault == "list" and not mended:
    # region list_planted
    def forward(x, past):  # a list that grows
        return layer(x), torch.stack(past).mean(0)

    # endregion
elif fault == "list":
    # region list_mended
    def forward(x, past):  # one tensor, filled in turn
        return layer(x), past.mean(0)

    # endregion
elif fault == "counter" and not mended:
    # region counter_planted
    class Decay(nn.Module):
        """Scales by the number of its calls."""

        step = 0

        def forward(self, x):
            self.step += 1
            return layer(x) * 0.99**self.step

    # endregion
    forward = Decay()
elif fault == "counter":
    # region counter_mended
    class Decay(nn.Module):
        """Scales by the number of its calls."""

        def __init__(self):
            super().__init__()
            self.register_buffer("step", torch.zeros(()))

        def forward(self, x):
            self.step += 1
            return layer(x) * 0.99**self.step

    # endregion
    forward = Decay()
else:

    def forward(x):
        return layer(x).softmax(1)


def arguments(call):
    """What the compiled function is given, call by call."""
    if fault == "lengths":
        return (texts[call],)
    if fault == "number":
        # region number_mended
        scale = torch.tensor(0.99**call)
        # endregion
        return texts[0], scale if mended else 0.99**call
    if fault == "list" and not mended:
        return texts[0], [texts[0][0]] * (call + 1)
    if fault == "list":
        return texts[0], texts[0]
    return (texts[0],)


# %% told
class Told(logging.Handler):
    """What TORCH_LOGS would print, without times and places."""

    def __init__(self):
        super().__init__()
        self.texts = []

    def emit(self, record):
        self.texts.append(record.getMessage())


logged = Told()
torch._logging.set_logs(graph_breaks=True, recompiles=True)
for name in ("symbolic_convert.__graph_breaks", "guards.__recompiles"):
    logger = logging.getLogger(f"torch._dynamo.{name}")
    logger.handlers, logger.propagate = [logged], False

# %% breaks
# region explain
told = torch._dynamo.explain(forward)(*arguments(0))
print(told.graph_break_count, "graph breaks")
# endregion
breaks = told.graph_break_count
torch._dynamo.reset()
counters.clear()
logged.texts.clear()

# %% calls
dynamic = True if fault == "lengths" and mended else None
compiled = torch.compile(forward, backend="eager", dynamic=dynamic)
results = [compiled(*arguments(call)) for call in range(calls)]
# region count
graphs = counters["stats"]["unique_graphs"]
# endregion

# %% message
KEY = re.compile(
    r"Graph Break Reason: [^E]|Unsupported|Failed|  Explanation|\W+\d+/\d+:"
)
for line in "\n".join(logged.texts[:1]).splitlines():
    if KEY.match(line):
        line = re.sub(r"  +#.*", "", line).strip()  # the line of source
        print(fill(line, 60, break_long_words=False, subsequent_indent="  "))

# %% summary
print(f"{fault}: {breaks} breaks; {graphs} graphs after {calls} calls")

# %% checks
if mended:
    assert (breaks, graphs) == (0, 1)
    assert not logged.texts
else:
    assert breaks == (fault in ("branch", "item", "print"))
    assert graphs > 1
    assert ("break" in logged.texts[0]) == bool(breaks)
if fault in ("lengths", "number"):  # what could be compiled anew in each call
    counters.clear()
    torch._dynamo.reset()
    static = torch.compile(forward, backend="eager", dynamic=False)
    for call in range(calls):
        static(*arguments(call))
    tensor = fault == "number" and mended
    assert counters["stats"]["unique_graphs"] == (1 if tensor else calls)
# Compiled or not, the same comes out.
expected = texts if fault == "lengths" else texts[:1] * calls
if fault in ("branch", "print"):
    assert all(forward(x).equal(y) for x, y in zip(expected, results, strict=True))
assert all((y[0] if isinstance(y, tuple) else y).isfinite().all() for y in results)
