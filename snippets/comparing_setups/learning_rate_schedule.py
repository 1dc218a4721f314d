"""How often a prepared learning-rate scheduler steps, and where that takes the learning rate."""
# /// script
# requires-python = ">=3.11"
# dependencies = ["torch>=2.11", "accelerate>=1.15", "numpy>=2.0"]
#
# [tool.benchbook]
# needs = ["cpu"]
# timeout = 120
# [tool.benchbook.metrics]
# num_processes = { unit = "processes" }
# scheduler_steps_per_optimizer_step = { unit = "count" }
# optimizer_steps_to_zero = { unit = "steps" }
# learning_rates = { unit = "1" }
# [tool.benchbook.matrix]
# ranks = [1, 2]
# split_batches = [false, true]
# ///

# %% parameters
split_batches = False
learning_rate = 0.1
schedule_steps = 40

# %% setup
import torch
from accelerate import Accelerator, DataLoaderConfiguration
from torch.optim.lr_scheduler import LambdaLR

config = DataLoaderConfiguration(split_batches=split_batches)
accelerator = Accelerator(cpu=True, dataloader_config=config)
num_processes = accelerator.num_processes

model = torch.nn.Linear(8, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=learning_rate)
scheduler = LambdaLR(optimizer, lambda step: max(0.0, 1 - step / schedule_steps))
model, optimizer, scheduler = accelerator.prepare(model, optimizer, scheduler)

# %% train
learning_rates = []
for _ in range(schedule_steps):
    learning_rates.append(scheduler.get_last_lr()[0])
    accelerator.backward(model(torch.ones(4, 8)).mean())
    optimizer.step()
    scheduler.step()
    optimizer.zero_grad()

scheduler_steps = scheduler.scheduler.last_epoch
scheduler_steps_per_optimizer_step = scheduler_steps // schedule_steps
optimizer_steps_to_zero = sum(rate > 0 for rate in learning_rates)
accelerator.print(
    f"{num_processes} process(es): {scheduler_steps} scheduler steps in "
    f"{schedule_steps} optimizer steps, "
    f"learning rate 0 after {optimizer_steps_to_zero}"
)

# %% checks
assert accelerator.device.type == "cpu"
assert scheduler_steps_per_optimizer_step in {1, num_processes}
assert 0 < optimizer_steps_to_zero <= schedule_steps
assert learning_rates[0] == learning_rate
accelerator.end_training()
