"""What `set_seed` covers, what it leaves alone, and when the order of the data still changes."""
# /// script
# requires-python = ">=3.11"
# dependencies = ["torch>=2.11", "accelerate>=1.15", "numpy>=2.0"]
#
# [tool.benchbook]
# needs = ["cpu"]
# worth = 1
# timeout = 120
# [tool.benchbook.metrics]
# sources_repeated = { unit = "count" }
# sources_not_repeated = { unit = "count" }
# weight_difference = { unit = "1" }
# positions_kept_by_set_seed = { unit = "percent" }
# positions_kept_by_seedable_sampler = { unit = "percent" }
# [tool.benchbook.smallest]
# samples = 100
# [tool.benchbook.work]
# seconds = 1
# ///

# %% parameters
seed = 42
samples = 1000
batch_size = 10

# %% setup
import random

import numpy as np
import torch
from accelerate import Accelerator, DataLoaderConfiguration
from accelerate.utils import set_seed
from torch.utils.data import DataLoader, TensorDataset

accelerator = Accelerator()
device = accelerator.device
print(f"device: {device.type}")

# %% set_seed
own = torch.Generator().manual_seed(seed)
sources = {
    "random": random.random,
    "np.random": np.random.rand,
    "torch": lambda: torch.rand(1).item(),
    "np.random.default_rng()": lambda: np.random.default_rng().random(),
    "your own torch.Generator": lambda: torch.rand(1, generator=own).item(),
}
if device.type != "cpu":  # an accelerator has a generator of its own
    sources[device.type] = lambda: torch.rand(1, device=device).item()

set_seed(seed)
first = {name: draw() for name, draw in sources.items()}
set_seed(seed)
second = {name: draw() for name, draw in sources.items()}

# %% covered
repeated = [name for name in sources if first[name] == second[name]]
not_repeated = [name for name in sources if first[name] != second[name]]
sources_repeated, sources_not_repeated = len(repeated), len(not_repeated)
print("repeated:    ", ", ".join(repeated))
print("not repeated:", ", ".join(not_repeated))

# %% weights
# region seed
set_seed(seed)  # before the model is built
# endregion
model = torch.nn.Linear(64, 64)
set_seed(seed)
same_seed = torch.nn.Linear(64, 64)

weight_difference = (model.weight - same_seed.weight).abs().max().item()
print(f"same seed, largest weight difference: {weight_difference}")


# %% data_order
def order():
    dataset = TensorDataset(torch.arange(samples))
    loader = DataLoader(dataset, batch_size=batch_size, shuffle=True)
    loader = accelerator.prepare(loader)
    return torch.cat([batch for (batch,) in loader]).cpu()


def share_kept():
    set_seed(seed)
    before = order()
    set_seed(seed)
    torch.nn.Linear(1, 1)  # a changed model draws two more random numbers
    after = order()
    return 100 * (before == after).float().mean().item()


positions_kept_by_set_seed = share_kept()
print(f"shuffle=True: {positions_kept_by_set_seed:.1f} % of samples keep their place")

# %% seedable
# region seedable_sampler
config = DataLoaderConfiguration(
    use_seedable_sampler=True,
    data_seed=seed,
)
accelerator = Accelerator(dataloader_config=config)
# endregion
positions_kept_by_seedable_sampler = share_kept()
print(f"seedable: {positions_kept_by_seedable_sampler:.1f} % keep their place")

# %% deterministic
set_seed(seed, deterministic=True)
deterministic = torch.are_deterministic_algorithms_enabled()
torch.use_deterministic_algorithms(False)
print(f"deterministic algorithms only: {deterministic}")

# %% checks
expected = torch.accelerator.current_accelerator(check_available=True) or torch.device(
    "cpu"
)
assert device.type == expected.type, "this ran on the CPU beside an accelerator"
assert not_repeated == ["np.random.default_rng()", "your own torch.Generator"]
assert set(repeated) == set(sources) - set(not_repeated)
assert weight_difference == 0
assert positions_kept_by_set_seed < 10
assert positions_kept_by_seedable_sampler == 100
assert deterministic
