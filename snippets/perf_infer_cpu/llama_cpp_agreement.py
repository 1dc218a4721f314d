"""How far llama.cpp on a CPU agrees with PyTorch in fp32, on a model that was trained to continue English."""
# /// script
# requires-python = ">=3.11"
# dependencies = [
#     "torch>=2.11", "transformers>=5.23", "accelerate>=1.15", "gguf>=0.19", "xllamacpp>=2026.10",
# ]
#
# [tool.benchbook]
# needs = ["cpu"]
# venv = "llamacpp"
# timeout = 600
# repeats = 2
# environment = { OMP_NUM_THREADS = "2" }
# [tool.benchbook.metrics]
# loss = { unit = "1", better = "lower" }
# fp32_loss = { unit = "1" }
# loss_increase = { unit = "1", better = "lower" }
# other_bytes = { unit = "count", better = "lower" }
# compared_bytes = { unit = "count" }
# other_texts = { unit = "count", better = "lower" }
# texts_written = { unit = "count" }
# [tool.benchbook.matrix]
# number_format = ["F32", "F16", "Q8_0", "Q4_0"]
# [tool.benchbook.smallest]
# steps = 5
# layers = 1
# texts_written = 2
# ///

# %% parameters
number_format = "Q8_0"
layers = 2
width = 256
steps = 250
texts_written = 64
given = 64
written = 32

# %% setup
import pydoc_data.topics
import tempfile

import gguf
import torch
import xllamacpp
from transformers import LlamaConfig, LlamaForCausalLM, set_seed

set_seed(0)
folder = tempfile.TemporaryDirectory()
path = f"{folder.name}/model.gguf"

# %% train
# What Python's own `help()` knows of its topics, byte by byte; the last twentieth is kept for the test.
text = "".join(pydoc_data.topics.topics.values()).encode()
text = torch.tensor(list(text))
kept = len(text) * 19 // 20
train, test = text[:kept], text[kept:]
config = LlamaConfig(
    vocab_size=256,
    hidden_size=width,
    intermediate_size=width * 2,
    num_hidden_layers=layers,
    num_attention_heads=width // 64,
    num_key_value_heads=width // 64,
    max_position_embeddings=1024,
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
model.eval()

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

# %% convert
# What `convert_hf_to_gguf.py` of llama.cpp does with a folder of Transformers, for this model.
writer = gguf.GGUFWriter(path, "llama")
writer.add_block_count(layers)
writer.add_context_length(config.max_position_embeddings)
writer.add_embedding_length(width)
writer.add_feed_forward_length(config.intermediate_size)
writer.add_head_count(config.num_attention_heads)
writer.add_head_count_kv(config.num_key_value_heads)
writer.add_layer_norm_rms_eps(config.rms_norm_eps)
writer.add_rope_dimension_count(config.head_dim)
# A token is a byte, and written as its number.
writer.add_tokenizer_model("llama")
writer.add_token_list([f"{number} " for number in range(config.vocab_size)])
writer.add_token_scores([0.0] * config.vocab_size)
writer.add_token_types([gguf.TokenType.NORMAL] * config.vocab_size)
places = gguf.get_tensor_name_map(gguf.MODEL_ARCH.LLAMA, layers)
quantized = gguf.GGMLQuantizationType[number_format]
for name, tensor in model.state_dict().items():
    values = tensor.numpy()
    if name.endswith(("q_proj.weight", "k_proj.weight")):
        # llama.cpp turns neighbours in a head, Transformers its two halves.
        halves = values.reshape(-1, 2, config.head_dim // 2, width)
        values = halves.swapaxes(1, 2).reshape(values.shape)
    kind = quantized if values.ndim > 1 else gguf.GGMLQuantizationType.F32
    place = places.get_name(name, try_suffixes=(".weight",))
    writer.add_tensor(place, gguf.quants.quantize(values, kind), raw_dtype=kind)
writer.write_header_to_file()
writer.write_kv_data_to_file()
writer.write_tensors_to_file()
writer.close()

# %% compare
settings = xllamacpp.CommonParams()
settings.model.path = path
settings.n_ctx = 256
settings.n_parallel = 1
threads = torch.get_num_threads()
settings.cpuparams.n_threads = threads
settings.cpuparams_batch.n_threads = threads
settings.verbosity = 0
server = xllamacpp.Server(settings)


def answer_to(prompt, tokens, **asked):
    """The tokens that it writes, each with the scores of those that it might have written."""
    answer = server.handle_completions(
        {"prompt": prompt, "max_tokens": tokens, "temperature": 0, **asked}
    )
    return answer["choices"][0]["logprobs"]["content"]


likeliest, losses, new_texts = [], [], []
for text in texts.tolist():
    said = [
        # All that it might say, and no rule but the scores.
        answer_to(text[:end], 1, logprobs=config.vocab_size)[0]
        for end in range(1, length + 1)
    ]
    likeliest.append([one["id"] for one in said])
    for of, byte in zip(said[:-1], text[1:], strict=True):
        scored = {one["id"]: one["logprob"] for one in of["top_logprobs"]}
        losses.append(-scored[byte])
    written_bytes = answer_to(text[:given], written, logprobs=1, ignore_eos=True)
    new_texts.append([one["id"] for one in written_bytes])
loss = sum(losses) / len(losses)
loss_increase = loss / fp32_loss - 1
other = torch.tensor(likeliest) != scores.argmax(-1)
other_bytes, compared_bytes = int(other.sum()), other.numel()
new_texts = torch.tensor(new_texts)
other_texts = int((new_texts != right_texts).any(-1).sum())
print(f"loss: {loss:.4f}, in fp32 {fp32_loss:.4f}")
print(f"another likeliest byte than in fp32: {other_bytes} of {compared_bytes}")
print(f"texts with another byte: {other_texts} of {texts_written}")

# %% checks
assert steps < 100 or fp32_loss < 2, "the model has learned nothing"
assert new_texts.shape == right_texts.shape == (texts_written, written)
assert abs(loss - fp32_loss) < 0.1, "this engine has broken the model"
