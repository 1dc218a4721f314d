"""How long requests wait at `transformers serve` on a CPU as more of them arrive, up to where it keeps up no more."""
# /// script
# requires-python = ">=3.11"
# dependencies = [
#     "torch>=2.11", "transformers[serving]>=5.23", "accelerate>=1.15", "tokenizers>=0.23.1",
# ]
#
# [tool.benchbook]
# needs = ["cpu"]
# timeout = 300
# repeats = 3
# environment = { OMP_NUM_THREADS = "2", HF_HUB_OFFLINE = "1" }
# matrix = [
#     { continuous_batching = false, arrivals_per_second = 4 },
#     { continuous_batching = false, arrivals_per_second = 8 },
#     { continuous_batching = false, arrivals_per_second = 16 },
#     { continuous_batching = true, arrivals_per_second = 4 },
#     { continuous_batching = true, arrivals_per_second = 8 },
#     { continuous_batching = true, arrivals_per_second = 16 },
#     { continuous_batching = true, arrivals_per_second = 32 },
# ]
# [tool.benchbook.metrics]
# median_seconds = { unit = "s", better = "lower", repeats = 3 }
# p95_seconds = { unit = "s", better = "lower", repeats = 3 }
# p99_seconds = { unit = "s", better = "lower", repeats = 3 }
# first_token_seconds = { unit = "s", better = "lower", repeats = 3 }
# answered_per_second = { unit = "1/s", better = "higher", repeats = 3 }
# requests = { unit = "count" }
# start_seconds = { unit = "s", better = "lower", repeats = 3 }
# [tool.benchbook.smallest]
# continuous_batching = false
# load_seconds = 1
# width = 128
# layers = 1
# ///

# %% parameters
continuous_batching = False
arrivals_per_second = 4
load_seconds = 20
layers = 4
width = 512
prompt_words = 96
written = 16

# %% setup
import http.client
import json
import random
import socket
import subprocess
import sys
import tempfile
import threading
import time
from statistics import quantiles

import torch
from tokenizers import Tokenizer, models, pre_tokenizers
from transformers import LlamaConfig, LlamaForCausalLM, PreTrainedTokenizerFast

folder = tempfile.TemporaryDirectory()

# %% model
# Words are numbers: the text is of no meaning, and each word is one token.
words = {f"w{number}": number for number in range(8000)}
tokenizer = Tokenizer(models.WordLevel(words, unk_token="w0"))
tokenizer.pre_tokenizer = pre_tokenizers.Whitespace()
PreTrainedTokenizerFast(tokenizer_object=tokenizer).save_pretrained(folder.name)
torch.manual_seed(0)
config = LlamaConfig(
    vocab_size=len(words),
    hidden_size=width,
    intermediate_size=width * 11 // 4,
    num_hidden_layers=layers,
    num_attention_heads=width // 64,
    num_key_value_heads=width // 64,
    bos_token_id=None,
    eos_token_id=None,
    pad_token_id=0,
)
LlamaForCausalLM(config).save_pretrained(folder.name)

# %% serve
with socket.socket() as free:
    free.bind(("localhost", 0))
    port = free.getsockname()[1]
# region serve_lines
command = [
    "transformers", "serve", folder.name,
    "--device", "cpu", "--port", str(port),
]  # fmt: skip
if continuous_batching:
    # Unset, the cache is sized by the machine's memory.
    command += [
        "--continuous-batching",
        "--cb-num-blocks", "64",
        "--cb-max-batch-tokens", "256",
    ]  # fmt: skip
# endregion
command[0] = sys.executable
command[1:1] = ["-c", "from transformers.cli.transformers import main; main()"]
start = time.monotonic()
server = subprocess.Popen(command, stderr=subprocess.DEVNULL, stdout=subprocess.DEVNULL)


def ask(seed):
    """Seconds until the first part of an answer, and until its end."""
    chosen = random.Random(seed)
    prompt = " ".join(f"w{chosen.randrange(1, 8000)}" for _ in range(prompt_words))
    body = {
        "model": folder.name,
        "prompt": prompt,
        "max_tokens": written,
        "stream": True,
    }
    begun = time.monotonic()
    connection = http.client.HTTPConnection("localhost", port, timeout=200)
    connection.request(
        "POST",
        "/v1/completions",
        json.dumps(body),
        {"Content-Type": "application/json"},
    )
    answer = connection.getresponse()
    assert answer.status == 200, answer.read()
    first = None
    for line in answer:
        if line.startswith(b"data: {") and first is None:
            first = time.monotonic() - begun
    connection.close()
    return first, time.monotonic() - begun


def until_it_answers():
    while True:
        assert server.poll() is None, "the server ended"
        try:
            return ask(0)
        except ConnectionRefusedError:
            time.sleep(0.1)


try:
    until_it_answers()
    start_seconds = time.monotonic() - start
    for seed in range(3):
        ask(seed)

    # The load.
    # Arrivals that know nothing of each other (a Poisson process): they do not wait for answers.
    chance = random.Random(arrivals_per_second)
    arrivals, place = [], 0.0
    while (place := place + chance.expovariate(arrivals_per_second)) < load_seconds:
        arrivals.append(place)
    answers = []

    def arrive(begin, seed):
        time.sleep(max(0.0, begin - time.monotonic()))
        answers.append(ask(seed))

    begin = time.monotonic() + 0.1
    clients = [
        threading.Thread(target=arrive, args=(begin + place, seed))
        for seed, place in enumerate(arrivals, 1)
    ]
    for client in clients:
        client.start()
    for client in clients:
        client.join()
    loaded_seconds = time.monotonic() - begin
finally:
    server.terminate()
    server.wait()

# %% counts
requests = len(arrivals)
whole = [end for _, end in answers]
hundredths = quantiles(whole, n=100, method="inclusive")
median_seconds, p95_seconds, p99_seconds = (hundredths[at - 1] for at in (50, 95, 99))
first_token_seconds = quantiles(
    [first for first, _ in answers], n=2, method="inclusive"
)[0]
answered_per_second = requests / loaded_seconds
print(
    f"{requests} requests in {load_seconds} s, answered at {answered_per_second:.1f} a second"
)
print(f"half within {median_seconds:.2f} s, 95 of 100 within {p95_seconds:.2f} s")

# %% checks
assert len(answers) == requests
assert min(first for first, _ in answers) > 0
