"""How soon a Llama on a CPU is done with many requests of different lengths: one by one, padded, continuously."""
# /// script
# requires-python = ">=3.11"
# dependencies = ["torch>=2.11", "transformers>=5.23", "accelerate>=1.15"]
#
# [tool.benchbook]
# needs = ["cpu"]
# timeout = 300
# environment = { OMP_NUM_THREADS = "2" }
# matrix = [
#     { way = "padded" },
#     { way = "padded_by_length", repeats = 3 },
#     { way = "one_by_one", repeats = 3 },
#     { way = "continuous" },
#     { way = "continuous_unbounded", repeats = 3 },
# ]
# [tool.benchbook.metrics]
# all_seconds = { unit = "s", better = "lower" }
# mean_seconds = { unit = "s", better = "lower" }
# written_per_second = { unit = "tokens/s", better = "higher" }
# asked_tokens = { unit = "tokens" }
# computed_tokens = { unit = "tokens", better = "lower" }
# same_texts = { unit = "count" }
# request_count = { unit = "count" }
# peak_growth = { unit = "B", better = "lower" }
# [tool.benchbook.smallest]
# layers = 1
# width = 128
# request_count = 2
# share_of_memory = 0.05
# ///

# %% parameters
way = "continuous"
layers = 4
width = 512
request_count = 32
share_of_memory = None

# %% setup
import random
import time
from pathlib import Path

import torch
from transformers import (
    ContinuousBatchingConfig,
    GenerationConfig,
    LlamaConfig,
    LlamaForCausalLM,
)

torch.manual_seed(0)
torch.set_grad_enabled(False)
config = LlamaConfig(
    hidden_size=width,
    intermediate_size=width * 11 // 4,
    num_hidden_layers=layers,
    num_attention_heads=width // 64,
    num_key_value_heads=width // 64,
    vocab_size=8000,
    bos_token_id=None,
    eos_token_id=None,
    pad_token_id=0,
)
model = LlamaForCausalLM(config).eval()

# %% requests
# Prompts of 8 to 64 tokens; of the answers, half are short. All are there at once.
chance = random.Random(0)
requests = [
    (
        [chance.randrange(1, 8000) for _ in range(chance.randrange(8, 65))],
        chance.choice([8, 8, 32, 64]),
    )
    for _ in range(request_count)
]
asked_tokens = sum(length for _, length in requests)


def one_by_one(requests):
    for prompt, length in requests:
        output = model.generate(
            torch.tensor([prompt]), do_sample=False, max_new_tokens=length
        )
        yield prompt, output[0, len(prompt) :].tolist()


def padded(requests, together=8):
    """Eight at once: each waits for the longest of its batch."""
    for first in range(0, len(requests), together):
        batch = requests[first : first + together]
        longest = max(len(prompt) for prompt, _ in batch)
        ids = torch.tensor(
            [[0] * (longest - len(prompt)) + prompt for prompt, _ in batch]
        )
        output = model.generate(
            ids,
            attention_mask=(ids != 0).long(),
            do_sample=False,
            max_new_tokens=max(length for _, length in batch),
        )
        for (prompt, length), written in zip(batch, output[:, longest:], strict=True):
            yield prompt, written[:length].tolist()


def padded_by_length(requests):
    """The same, where the length of each answer were known beforehand."""
    return padded(sorted(requests, key=lambda one: one[1]))


def continuous(requests):
    # region continuous
    manager = model.init_continuous_batching(
        generation_config=GenerationConfig(
            do_sample=False,
            eos_token_id=-1,
        ),
        # Unset, the cache is sized by the machine's memory.
        continuous_batching_config=ContinuousBatchingConfig(
            num_blocks=64, max_batch_tokens=256
        ),
    )
    # endregion
    return answers_of(manager, requests)


def continuous_unbounded(requests):
    manager = model.init_continuous_batching(
        generation_config=GenerationConfig(do_sample=False, eos_token_id=-1),
        continuous_batching_config=ContinuousBatchingConfig(
            max_memory_percent=share_of_memory
        ),
    )
    return answers_of(manager, requests)


def answers_of(manager, requests):
    # region requests_lines
    manager.start()
    prompts = {
        manager.add_request(
            prompt,
            max_new_tokens=length,
        ): prompt
        for prompt, length in requests
    }
    # endregion
    try:
        for _ in requests:
            result = None
            while result is None or not result.is_finished():
                result = manager.get_result(timeout=10)
            yield prompts[result.request_id], result.generated_tokens
    finally:
        manager.stop(block=True)


def held(name):
    """Bytes of this process: `VmRSS` now, `VmHWM` at most."""
    lines = Path("/proc/self/status").read_text("ascii").splitlines()
    return int(next(line for line in lines if line.startswith(name)).split()[1]) * 1024


# %% measure
right = {tuple(prompt): text for prompt, text in one_by_one(requests)}
computed_tokens = 0


def count(_module, inputs):
    global computed_tokens
    computed_tokens += inputs[0].numel() // width


hook = model.model.layers[0].register_forward_pre_hook(count)
answers, ends = {}, []
# The most that it holds is counted from here on.
Path("/proc/self/clear_refs").write_text("5", "ascii")
before = held("VmRSS")
start = time.perf_counter()
for prompt, text in globals()[way](requests):
    ends.append(time.perf_counter() - start)
    answers[tuple(prompt)] = text
all_seconds = ends[-1]
hook.remove()
peak_growth = held("VmHWM") - before
mean_seconds = sum(ends) / len(ends)
written_per_second = asked_tokens / all_seconds
same_texts = sum(answers[prompt] == text for prompt, text in right.items())
print(
    f"{asked_tokens} tokens in {all_seconds:.1f} s: {written_per_second:.0f} a second"
)
print(f"the model computed {computed_tokens} tokens; texts as one by one: {same_texts}")

# %% checks
assert len(answers) == request_count
assert sum(map(len, answers.values())) == asked_tokens
