"""What caches and guesses change when `generate` writes on a CPU: calls of the model, and the text."""
# /// script
# requires-python = ">=3.11"
# dependencies = ["torch>=2.11", "transformers>=5.23", "accelerate>=1.15"]
#
# [tool.benchbook]
# needs = ["cpu"]
# timeout = 600
# repeats = 2
# environment = { OMP_NUM_THREADS = "2" }
# [tool.benchbook.metrics]
# calls = { unit = "count", better = "lower" }
# written_tokens = { unit = "tokens" }
# tokens_per_call = { unit = "1", better = "higher" }
# guessed_right = { unit = "tokens" }
# same_texts = { unit = "count" }
# texts_written = { unit = "count" }
# [tool.benchbook.matrix]
# way = ["dynamic", "static", "prompt_lookup", "assisted"]
# [tool.benchbook.smallest]
# steps = 5
# written = 4
# texts_written = 2
# ///

# %% parameters
way = "prompt_lookup"
steps = 250
texts_written = 8
given = 256
written = 48

# %% setup
import pydoc_data.topics

import torch
from transformers import LlamaConfig, LlamaForCausalLM, set_seed

# %% train
# What Python's own `help()` knows of its topics, byte by byte; the last twentieth is kept for the test.
text = "".join(pydoc_data.topics.topics.values()).encode()
text = torch.tensor(list(text))
kept = len(text) * 19 // 20
train, test = text[:kept], text[kept:]


def trained(layers, width):
    set_seed(0)
    config = LlamaConfig(
        vocab_size=256,
        hidden_size=width,
        intermediate_size=width * 2,
        num_hidden_layers=layers,
        num_attention_heads=width // 64,
        num_key_value_heads=width // 64,
        bos_token_id=None,
        eos_token_id=None,
        pad_token_id=0,
    )
    model = LlamaForCausalLM(config)
    optimizer = torch.optim.AdamW(model.parameters(), lr=3e-3)
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, 3e-3, total_steps=steps)
    for _ in range(steps):
        starts = torch.randint(len(train) - 128, (16, 1))
        batch = train[starts + torch.arange(128)]
        with torch.autocast("cpu", torch.bfloat16):
            loss = model(input_ids=batch, labels=batch).loss
        loss.backward()
        optimizer.step()
        schedule.step()
        optimizer.zero_grad()
    return model.eval()


model, draft = trained(2, 256), trained(1, 64)

# %% generate
places = torch.linspace(0, len(test) - given, texts_written).long()
prompts = test[places[:, None] + torch.arange(given)]
calls = 0


def count(*_):
    global calls
    calls += 1


def plain(inputs):
    return model.generate(inputs, do_sample=False, max_new_tokens=written)


def dynamic(inputs):
    return plain(inputs)


def static(inputs):
    # region static
    output = model.generate(
        inputs,
        cache_implementation="static",
        do_sample=False,
        max_new_tokens=written,
    )
    # endregion
    return output


def prompt_lookup(inputs):
    # region prompt_lookup
    output = model.generate(
        inputs,
        prompt_lookup_num_tokens=4,
        do_sample=False,
        max_new_tokens=written,
    )
    # endregion
    return output


def assisted(inputs):
    # fmt: off
    # region assisted
    draft.generation_config.num_assistant_tokens = 4
    draft.generation_config.num_assistant_tokens_schedule = \
        "constant"
    output = model.generate(
        inputs,
        assistant_model=draft,
        do_sample=False,
        max_new_tokens=written,
    )
    # endregion
    # fmt: on
    return output


right = [plain(prompt[None]) for prompt in prompts]
write = globals()[way]
hook = model.register_forward_pre_hook(count)
texts = [write(prompt[None]) for prompt in prompts]
hook.remove()

# %% counts
written_tokens = sum(text.shape[1] - given for text in texts)
tokens_per_call = written_tokens / calls
guessed_right = written_tokens - calls
same_texts = sum(map(torch.equal, texts, right))
print(
    f"{written_tokens} tokens in {calls} calls of the model: {tokens_per_call:.2f} each"
)
print(f"texts as without: {same_texts} of {texts_written}")

# %% checks
assert written_tokens == texts_written * written
assert way in ("prompt_lookup", "assisted") or calls == written_tokens
