"""LitGPT's recipes for fine-tuning on one GPU of 24 GB: what a training of the longest batches takes, from the first step on.

The settings are those of `config_hub/finetune` in `github.com/Lightning-AI/litgpt` (Apache-2.0) for Alpaca2k, and the
loop is the one of the commit that each recipe names: weights, adapters and optimizer in bf16, logits in fp32, and what the last
pass left behind still there in the next one. The model is written anew, in plain PyTorch, so that autograd keeps
the same tensors. Weights are random: bytes do not depend on them. Four bits are those of bitsandbytes 0.42.0, computed here
without its kernels.
"""
# /// script
# requires-python = ">=3.11"
# dependencies = ["torch>=2.11"]
#
# [tool.benchbook]
# needs = ["accelerator", "cpu"]
# meters = ["cpu_allocator"]
# inputs = ["litgpt_recipes.json"]
# timeout = 300
# [tool.benchbook.metrics]
# trainable_parameters = { unit = "count" }
# [tool.benchbook.matrix]
# recipe = [
#     "gemma_2b_lora", "gemma_2b_qlora", "gemma_7b_qlora", "gemma_2_2b_lora", "gemma_2_2b_qlora",
#     "gemma_2_9b_qlora", "llama_2_7b_lora", "llama_2_7b_qlora", "llama_3_8b_lora",
#     "llama_3_8b_qlora", "llama_3_1_8b_lora", "llama_3_1_8b_qlora", "llama_3_2_1b_full",
#     "llama_3_2_1b_lora", "llama_3_2_1b_qlora", "llama_3_2_3b_full", "llama_3_2_3b_lora",
#     "llama_3_2_3b_qlora", "mistral_7b_v0_2_lora", "mistral_7b_v0_2_qlora", "mistral_7b_lora",
#     "mistral_7b_qlora", "phi_2_lora", "phi_2_qlora", "phi_3_full", "phi_3_lora", "phi_3_qlora",
#     "stablelm_alpha_3b_lora", "stablelm_alpha_3b_qlora", "tiny_llama_full", "tiny_llama_lora",
#     "tiny_llama_qlora",
# ]
# # What a CPU shows of it: that each recipe trains, and what its tensors come to in one layer.
# [tool.benchbook.on.cpu]
# layers = 1
# divisor = 8
# sequence_length = 64
# [tool.benchbook.smallest]
# layers = 1
# divisor = 16
# sequence_length = 8
# [tool.benchbook.work]
# bf16 = "3 * 6 * 8 * sequence_length * 8e9"
# seconds = 20
# ///

# %% parameters
recipe = "llama_3_2_3b_lora"
layers = 42  # at most
divisor = 1  # of the model's widths
sequence_length = 512  # the limit of every recipe; most batches are shorter

# %% settings
import json
from pathlib import Path

known = json.loads(Path(__file__).with_name("litgpt_recipes.json").read_text("utf-8"))
settings = known["recipes"][recipe]
shape = known["models"][settings["model"]]
depth = min(layers, shape["layers"])
width, inner = shape["width"] // divisor, shape["inner"] // divisor
vocabulary = shape["vocabulary"] // divisor
heads, groups = shape["heads"], shape["groups"]
head = shape["head"] // divisor
turned = shape.get("turned", shape["head"]) // divisor
bias = shape.get("bias", False)
adapted = settings.get("targets", [])
rank = settings.get("rank", 0)
scaling = 16 / rank if rank else 1.0
four_bit = settings.get("four_bit", False)
# LitGPT splits the head and the loss of adapters' trainings, not those of all weights.
chunk = 128 if adapted else 0

# %% four_bits
import torch
from torch import nn
from torch.nn import functional

device = torch.accelerator.current_accelerator(check_available=True) or torch.device(
    "cpu"
)
torch.manual_seed(0)
BLOCK = 64
SLICE = 2**14  # blocks at a time, for operations that make many temporaries
# Dettmers et al. 2023, arXiv 2305.14314, appendix E.
LEVELS = [
    -1.0, -0.6961928, -0.52507305, -0.39491749, -0.28444138, -0.18477343, -0.09105004, 0.0,
    0.0795803, 0.1609302, 0.2461123, 0.33791524, 0.44070983, 0.562617, 0.72295684, 1.0,
]  # fmt: skip


# Each is one operation to whoever watches, as a kernel of bitsandbytes is.
@torch.library.custom_op("litgpt_recipes::to_four_bits", mutates_args=())
def to_four_bits(weight: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    numbers = weight.reshape(-1).float()
    blocks = functional.pad(numbers, (0, -len(numbers) % BLOCK)).view(-1, BLOCK)
    levels = torch.tensor(LEVELS, device=weight.device)
    largest = blocks.abs().amax(dim=1)
    halves = []
    for part, most in zip(blocks.split(SLICE), largest.split(SLICE), strict=True):
        relative = part / most.clamp(min=1e-12)[:, None]
        nearest = (relative[..., None] - levels).abs().argmin(dim=-1).to(torch.uint8)
        halves.append((nearest[:, ::2] << 4 | nearest[:, 1::2]).reshape(-1))
    packed = torch.cat(halves)[: (weight.numel() + 1) // 2]
    return packed[:, None].clone(), largest


@to_four_bits.register_fake
def _(weight: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    packed = weight.new_empty((weight.numel() + 1) // 2, 1, dtype=torch.uint8)
    blocks = -(-weight.numel() // BLOCK)
    return packed, weight.new_empty(blocks, dtype=torch.float32)


@torch.library.custom_op("litgpt_recipes::from_four_bits", mutates_args=())
def from_four_bits(
    packed: torch.Tensor, largest: torch.Tensor, levels: torch.Tensor, columns: int
) -> torch.Tensor:
    result = torch.empty(2 * len(packed), dtype=torch.float16, device=packed.device)
    step = SLICE * BLOCK // 2
    for start in range(0, len(packed), step):
        part = packed[start : start + step, 0].long()
        both = levels[torch.stack((part >> 4, part & 15), dim=1).reshape(-1)]
        scales = largest[2 * start // BLOCK : 2 * (start + step) // BLOCK]
        scales = scales.repeat_interleave(BLOCK)[: len(both)]
        result[2 * start : 2 * start + len(both)] = both * scales
    return result.view(-1, columns)


@from_four_bits.register_fake
def _(
    packed: torch.Tensor, largest: torch.Tensor, levels: torch.Tensor, columns: int
) -> torch.Tensor:
    return packed.new_empty(2 * len(packed) // columns, columns, dtype=torch.float16)


class FourBitProduct(torch.autograd.Function):
    """The product with a weight that is made anew in fp16, then in the input's type."""

    @staticmethod
    def forward(ctx, hidden, layer):
        ctx.layer = layer
        # Of no use to the backward pass. It stays for as long as the graph does, even
        # when what autograd itself had saved is free.
        ctx.kept = hidden if ctx.needs_input_grad[0] else None
        return functional.linear(hidden, layer.whole().to(hidden.dtype), layer.bias)

    @staticmethod
    def backward(ctx, gradient):
        return torch.matmul(gradient, ctx.layer.whole().to(gradient.dtype)), None


class FourBitLinear(nn.Module):
    """A frozen linear layer in NF4, whose scales stay in fp32."""

    def __init__(self, inputs, outputs, bias):
        super().__init__()
        self.inputs, self.outputs = inputs, outputs
        self.bias = nn.Parameter(torch.zeros(outputs)) if bias else None
        self.register_buffer("levels", torch.tensor(LEVELS, dtype=torch.float32))
        self.quantize(torch.randn(outputs, inputs) / inputs**0.5)

    def quantize(self, weight):
        packed, largest = to_four_bits(weight.to(torch.float16))
        self.weight = nn.Parameter(packed, requires_grad=False)
        self.register_buffer("largest", largest)

    def whole(self):
        return from_four_bits(self.weight, self.largest, self.levels, self.inputs)

    def forward(self, hidden):
        return FourBitProduct.apply(hidden, self)


# %% adapters
class AdaptedLinear(nn.Module):
    """A frozen layer with low-rank factors beside it, of the same type."""

    def __init__(self, inputs, outputs, bias, target):
        super().__init__()
        kind = FourBitLinear if four_bit else nn.Linear
        self.linear = kind(inputs, outputs, bias)
        self.adapts = target in adapted
        if self.adapts:
            self.dropout = nn.Dropout(settings["dropout"])
            self.down = nn.Parameter(torch.randn(rank, inputs) / inputs**0.5)
            self.up = nn.Parameter(torch.zeros(outputs, rank))

    def forward(self, hidden):
        result = self.linear(hidden)
        if not self.adapts:
            return result
        added = self.dropout(hidden) @ self.down.transpose(0, 1)
        added = (added @ self.up.transpose(0, 1)) * scaling
        return result + added


class AdaptedMixture(nn.Module):
    """The layer of queries, keys and values, of which some are adapted by a grouped convolution."""

    def __init__(self, inputs):
        super().__init__()
        shared = heads // groups
        self.outputs = groups * (shared + 2) * head
        kind = FourBitLinear if four_bit else nn.Linear
        self.linear = kind(inputs, self.outputs, bias)
        sizes = {"query": heads * head, "key": groups * head, "value": groups * head}
        self.sizes = [size for name, size in sizes.items() if name in adapted]
        self.dropout = nn.Dropout(settings["dropout"])
        self.down = nn.Parameter(
            torch.randn(rank * len(self.sizes), inputs) / inputs**0.5
        )
        self.up = nn.Parameter(torch.zeros(sum(self.sizes), rank))
        names = ["query"] * shared + ["key", "value"]
        places = [
            group * len(names) * head + number * head + column
            for wanted in sizes
            if wanted in adapted
            for group in range(groups)
            for number, name in enumerate(names)
            if name == wanted
            for column in range(head)
        ]
        self.places = places if settings.get("copied_padding") else None
        if self.places is None and len(places) < self.outputs:
            self.register_buffer("place", torch.tensor(places))

    def forward(self, hidden):
        result = self.linear(hidden)
        down = functional.linear(self.dropout(hidden), self.down)
        mixed = self.convolved(down.transpose(-2, -1), self.up.unsqueeze(-1))
        added = self.padded(mixed.transpose(-2, -1)) * scaling
        return result + added

    def convolved(self, down, up):
        if heads == groups:
            return functional.conv1d(down, up, groups=len(self.sizes))
        downs = down.chunk(len(self.sizes), dim=1)
        ups = up.split(self.sizes)
        return torch.cat(
            [functional.conv1d(a, b) for a, b in zip(downs, ups, strict=True)], dim=1
        )

    def padded(self, added):
        if len(self.sizes) == 3:
            return added
        if self.places is None:
            result = added.new_zeros(*added.shape[:-1], self.outputs)
            return result.index_copy_(-1, self.place, added)
        added = added.transpose(0, 1)
        result = added.new_zeros((*added.shape[:-1], self.outputs))
        result = result.view(-1, self.outputs)
        place = torch.tensor(self.places, device=result.device)
        result = result.index_copy(1, place, added.reshape(-1, added.shape[-1]))
        return result.view(*added.shape[:-1], self.outputs).transpose(0, 1)


def make_linear(inputs, outputs, bias, target):
    if adapted:
        return AdaptedLinear(inputs, outputs, bias, target)
    return nn.Linear(inputs, outputs, bias)


# %% model
class Norm(nn.Module):
    """The root mean square in fp32; until July 2024 its weight was applied in 16 bits."""

    def __init__(self):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(width))

    def forward(self, hidden):
        wide = hidden.float()
        square = torch.mean(wide * wide, dim=-1, keepdim=True)
        normed = wide * torch.rsqrt(square + 1e-5)
        if settings.get("narrow_norm"):
            normed = normed.to(hidden.dtype)
            return normed * self.weight
        return (normed * self.weight.float()).to(hidden.dtype)


def make_norm():
    return nn.LayerNorm(width) if shape.get("layer_norm") else Norm()


def turn(hidden, cosine, sine):
    first, second = hidden.chunk(2, dim=-1)
    swapped = torch.cat((-second, first), dim=-1)
    result = (hidden * cosine) + (swapped * sine)
    return result.to(hidden.dtype)


class Attention(nn.Module):
    """Queries, keys and values lie side by side in each group, as LitGPT had them in 2024."""

    def __init__(self):
        super().__init__()
        outputs = (heads + 2 * groups) * head
        self.mixture = (
            AdaptedMixture(width) if adapted else nn.Linear(width, outputs, bias)
        )
        self.projection = make_linear(heads * head, width, bias, "projection")

    def forward(self, hidden, cosine, sine):
        batch, tokens, _ = hidden.shape
        shared = heads // groups
        mixed = self.mixture(hidden).view(batch, tokens, groups, shared + 2, head)
        mixed = mixed.permute(0, 2, 3, 1, 4)
        query, key, value = mixed.split((shared, 1, 1), dim=2)
        if groups != heads:
            key = key.expand(batch, groups, shared, tokens, head)
            value = value.expand(batch, groups, shared, tokens, head)
        query = query.reshape(batch, -1, tokens, head)
        key = key.reshape(batch, -1, tokens, head)
        value = value.reshape(batch, -1, tokens, head)
        turned_query = turn(query[..., :turned], cosine, sine)
        turned_key = turn(key[..., :turned], cosine, sine)
        query = torch.cat((turned_query, query[..., turned:]), dim=-1)
        key = torch.cat((turned_key, key[..., turned:]), dim=-1)
        if "score_cap" in shape:
            found = capped_attention(query, key, value)
        else:
            found = functional.scaled_dot_product_attention(
                query, key, value, is_causal=True
            )
        found = found.transpose(1, 2).reshape(batch, tokens, heads * head)
        return self.projection(found)


def capped_attention(query, key, value):
    tokens = query.shape[2]
    scores = query @ key.mT * head**-0.5
    scores = torch.tanh(scores / shape["score_cap"]) * shape["score_cap"]
    mask = torch.ones(tokens, tokens, dtype=query.dtype, device=query.device).triu(1)
    mask.masked_fill_(mask.bool(), torch.finfo(query.dtype).min)
    scores = scores + mask
    scores = functional.softmax(scores, dim=-1, dtype=torch.float32).to(query.dtype)
    return scores @ value


class FeedForward(nn.Module):
    """Two layers, or three with a gate."""

    def __init__(self):
        super().__init__()
        self.gated = shape["mlp"] != "plain"
        self.first = make_linear(width, inner, bias, "mlp")
        if self.gated:
            self.second = make_linear(width, inner, bias, "mlp")
        self.last = make_linear(inner, width, bias, "mlp")

    def forward(self, hidden):
        first = self.first(hidden)
        if not self.gated:
            return self.last(functional.gelu(first))
        second = self.second(hidden)
        if shape["mlp"] == "gelu":
            hidden = functional.gelu(first, approximate="tanh") * second
        else:
            hidden = functional.silu(first) * second
        return self.last(hidden)


class Block(nn.Module):
    """Attention and feed-forward, in turn or side by side."""

    def __init__(self):
        super().__init__()
        self.norm_1, self.attention = make_norm(), Attention()
        if shape.get("parallel") != "shared":
            self.norm_2 = make_norm()
        self.feed_forward = FeedForward()
        after = make_norm if shape.get("post_norms") else nn.Identity
        self.after_attention, self.after_feed_forward = after(), after()

    def forward(self, hidden, cosine, sine):
        normed = self.norm_1(hidden)
        attended = self.after_attention(self.attention(normed, cosine, sine))
        if "parallel" in shape:
            if shape["parallel"] == "own":
                normed = self.norm_2(hidden)
            return self.feed_forward(normed) + attended + hidden
        hidden = attended + hidden
        found = self.feed_forward(self.norm_2(hidden))
        return self.after_feed_forward(found) + hidden


class Model(nn.Module):
    """With a head of its own: LitGPT ties it to the embedding only when asked."""

    def __init__(self):
        super().__init__()
        has_bias = shape.get("head_bias", False)
        self.head = make_linear(width, vocabulary, has_bias, "head")
        self.embedding = nn.Embedding(vocabulary, width)
        self.blocks = nn.ModuleList(Block() for _ in range(depth))
        self.norm = make_norm()
        # In fp32, as LitGPT makes them anew for the longest batch.
        places = torch.arange(sequence_length, dtype=torch.float32)
        speeds = 10000 ** (-torch.arange(0, turned, 2, dtype=torch.float32) / turned)
        angles = torch.outer(places, speeds).repeat(1, 2)
        self.register_buffer("cosine", torch.cos(angles))
        self.register_buffer("sine", torch.sin(angles))

    def forward(self, tokens, chunk=0):
        length = tokens.shape[1]
        cosine, sine = self.cosine[:length], self.sine[:length]
        hidden = self.embedding(tokens)
        if shape.get("scaled"):
            hidden = hidden * width**0.5
        for block in self.blocks:
            hidden = block(hidden, cosine, sine)
        hidden = self.norm(hidden)
        if chunk:  # without a cap, which LitGPT left out here in 2024
            return [self.head(part) for part in hidden.split(chunk, dim=1)]
        hidden = self.head(hidden)
        if "logit_cap" in shape:
            cap = shape["logit_cap"]
            hidden = torch.tanh(hidden / cap) * cap
        return hidden


torch.set_default_dtype(torch.bfloat16)
with device:
    model = Model()
torch.set_default_dtype(torch.float32)
if adapted:
    for name, weight in model.named_parameters():
        weight.requires_grad_(name.endswith((".down", ".up")))
trainable = [weight for weight in model.parameters() if weight.requires_grad]
trainable_parameters = sum(weight.numel() for weight in trainable)

# %% load
# The checkpoint comes from the CPU, and is quantized once more, layer by layer.
for part in model.modules():
    if isinstance(part, FourBitLinear):
        size = part.outputs, part.inputs
        half = torch.zeros(size, dtype=torch.float16, device=device).uniform_(-0.1, 0.1)
        part.quantize(half)
        del half


# %% optimizer
class PagedAdamW(torch.optim.Optimizer):
    """As bitsandbytes has it: states in fp32, of which only small ones lie in the device's memory."""

    SMALL = 100_000

    def __init__(self, parameters, lr):
        super().__init__(parameters, {"lr": lr})

    @torch.no_grad()
    def step(self):
        for group in self.param_groups:
            for weight in group["params"]:
                self.change(weight, self.state[weight], group["lr"])

    def change(self, weight, state, rate):
        where = weight.device if weight.numel() < self.SMALL else "cpu"
        if not state:
            for name in ("mean", "square"):
                state[name] = torch.zeros(weight.shape, device=where)
        gradient = weight.grad.to(where, torch.float32)
        state["mean"].lerp_(gradient, 0.1)
        state["square"].lerp_(gradient * gradient, 0.001)
        change = state["mean"] / (state["square"].sqrt() + 1e-8)
        weight.add_(change.to(weight.device, weight.dtype), alpha=-rate)


if four_bit:
    optimizer = PagedAdamW(trainable, lr=2e-4)
else:
    optimizer = torch.optim.AdamW(trainable, lr=2e-4, weight_decay=0.0, foreach=True)

# %% batches
size = settings["batch"], sequence_length
tokens = torch.randint(0, vocabulary, size, device=device)
labels = tokens.clone()


def forward(chunk=0):
    """The logits in fp32: Fabric converts a model's output to the default type."""
    torch.set_default_dtype(torch.bfloat16)
    output = model(tokens, chunk)
    torch.set_default_dtype(torch.float32)
    return [each.float() for each in output] if chunk else output.float()


def loss_in_chunks(logits, targets):
    """The mean over all tokens, from pieces of the logits."""
    if isinstance(logits, list):
        parts = [part.reshape(-1, part.shape[-1]) for part in logits]
        wanted = [each.reshape(-1) for each in targets.split(logits[0].shape[1], dim=1)]
    else:
        logits = logits.reshape(-1, logits.shape[-1])
        parts, wanted = logits.split(128), targets.reshape(-1).split(128)
    losses = [
        functional.cross_entropy(a, b, reduction="none")
        for a, b in zip(parts, wanted, strict=True)
    ]
    count = (targets != -100).sum()
    return torch.cat(losses).sum() / count.maximum(torch.ones_like(count))


def loss_at_once(logits, targets):
    logits = logits.reshape(-1, logits.shape[-1])
    return functional.cross_entropy(logits, targets.reshape(-1))


@torch.no_grad()
def validate():
    model.eval()
    found = []
    for _ in range(2):
        logits = forward()
        found.append(loss_at_once(logits[..., :-1, :], labels[..., 1:]))
    model.train()
    return found


# %% validate
validated = validate()

# %% train
losses = []
# The first pass makes the gradients, the second adds to them, and so do all others.
passes = min(settings["accumulation"], 2)
for _ in range(3):
    for _ in range(passes):
        logits = forward(chunk)  # beside those of the last pass
        if chunk:
            logits[-1] = logits[-1][..., :-1, :]
            loss = loss_in_chunks(logits, labels[..., 1:])
        else:
            loss = loss_in_chunks(logits[..., :-1, :], labels[..., 1:])
        (loss / passes).backward()
        losses.append(loss.detach())
        del loss
    optimizer.step()
    optimizer.zero_grad()
validated += validate()

# %% report
losses = [loss.item() for loss in losses]
validated = [loss.item() for loss in validated]
count = sum(weight.numel() for weight in model.parameters())
print(f"{recipe}: {trainable_parameters:,} parameters are trained")
print(f"losses: {losses[0]:.3f}, {losses[-1]:.3f}")

# %% checks
import math

kinds = {weight.device.type for weight in model.parameters()}
assert kinds == {device.type}
assert all(math.isfinite(loss) for loss in losses + validated)
assert losses[-1] < losses[0]
assert (trainable_parameters == count) == (not adapted)
assert all(weight.dtype == torch.bfloat16 for weight in trainable)
example = torch.randn(96, 64, device=device)
packed, largest = to_four_bits(example)
levels = torch.tensor(LEVELS, device=device)
again = from_four_bits(packed, largest, levels, 64)
assert packed.numel() == example.numel() // 2
assert (again - example).abs().max() < 0.2 * largest.max()
